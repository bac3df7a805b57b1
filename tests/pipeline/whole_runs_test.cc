// Traffic and reads reported by whole runs, and memory that they hold: text encoders and
// autoencoder included.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "host_memory.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/found_files.h"
#include "pipeline/planner/costs/traffic.h"
#include "pipeline/planner/counted_parameters.h"
#include "pipeline/planner/traffic_text.h"

namespace braid::whole_runs_test {

const std::filesystem::path kSource = BRAID_SOURCE_DIR;

struct WholeRun {
  const char* model;
  Layout layout;
};

std::ostream& operator<<(std::ostream& out, const WholeRun& r) { return out << r.model; }

class WholeRuns : public testing::TestWithParam<WholeRun> {};

TEST_P(WholeRuns, ReportTrafficAndBytesAsPredicted) {
  const auto& [model, layout] = GetParam();
  const PipelineOptions options{
      .model = kSource / model, .dtype = Dtype::kFloat32, .layout = layout};
  const Engine engine(options, {});
  const auto facts = engine
                         .generate({.prompts = {"a"},
                                    .negative_prompt = "b",
                                    .true_cfg = 2,
                                    .width = 80,
                                    .height = 48,
                                    .steps = 2,
                                    .max_sequence_length = 9,
                                    .num_images = 3,
                                    .batch_size = 2},
                                   {})
                         .facts;
  auto job = job_of(deploy(options), {});
  job.width = 80;
  job.height = 48;
  job.text_tokens = 9;
  // the first rank's share of three pictures: two or, with a batch per stage, all
  job.batch_size = layout.pp > 1 ? 3 : 2;
  job.branches = 2;
  const Degrees grid{.dp = layout.dp,
                     .cfg = layout.cfg,
                     .pp = layout.pp,
                     .ring = layout.ring,
                     .ulysses = layout.ulysses,
                     .tp = layout.tp};
  const auto run_of = [&](int stage) {
    return stage_of(job.shape(), share_of(job.shape().num_blocks(), stage, layout.pp));
  };
  EXPECT_EQ(text_of_traffic(facts.step_traffic),
            text_of_traffic(predict_traffic(job, grid, 0, run_of(0))));

  const auto files = find_model(options).files;
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const auto flux_config = read_flux_config(config("transformer"));
  const auto clip = read_clip_config(config("text_encoder"));
  const auto t5 = read_t5_config(config("text_encoder_2"));
  const auto stored = [](const Checkpoint& checkpoint) {
    return std::int64_t(c10::elementSize(checkpoint.dtype()));
  };
  const auto vae = stored(files.open("vae")) * count_vae_decoder(job.family->description().vae);
  ASSERT_EQ(facts.load.bytes_read.size(), std::size_t(grid.product()));
  for (int rank = 0; rank < grid.product(); ++rank) {
    const auto place = place_of(grid, rank).pp;
    const int sharers = layout.text == TextRanks::kShared ? grid.tp : 1;
    const auto text = stored(files.open("text_encoder")) * count_clip(clip).of_rank(sharers) +
                      stored(files.open("text_encoder_2")) * count_t5(t5).of_rank(sharers);
    const auto flux =
        stored(files.open("transformer")) *
        parameters_of(run_of(place), flux_config, SharedModulation::kYes).of_rank(grid.tp);
    EXPECT_EQ(facts.load.bytes_read[std::size_t(rank)].all,
              flux + (rank < sharers ? text : 0) +
                  (rank == 0 || layout.decode == DecodeRanks::kAll ? vae : 0))
        << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, WholeRuns,
    testing::Values(WholeRun{"models/demo", {.tp = 2, .ring = 2}},
                    WholeRun{"models/demo", {.tp = 2, .pp = 2, .text = TextRanks::kShared}},
                    WholeRun{"tests/data/parity/basic/model", {.tp = 2}},
                    WholeRun{"tests/data/parity/sharded/model", {.tp = 2, .ulysses = 2}}));
INSTANTIATE_TEST_SUITE_P(
    SlowModels, WholeRuns,
    testing::Values(WholeRun{"models/demo", {}}, WholeRun{"models/demo", {.tp = 3}},
                    WholeRun{"models/demo", {.ulysses = 2, .cfg = 2}},
                    WholeRun{"models/demo", {.tp = 2, .dp = 2}}, WholeRun{"models/demo", {.pp = 3}},
                    WholeRun{"models/demo",
                             {.tp = 4, .text = TextRanks::kShared, .decode = DecodeRanks::kFirst}},
                    WholeRun{"tests/data/parity/schnell/model", {.ring = 3}},
                    WholeRun{"tests/data/parity/prefixed/model", {.tp = 5}}));

// A request may have thousands of prompts, of which a plan counts those of a round.
TEST(SlowHeldPrompts, AreThoseOfARound) {
  constexpr std::int64_t kTokens = 512, kWidth = 128;  // of the model's T5
  auto& memory = HostMemory::get();
  const Engine engine(
      {.model = kSource / "models/demo", .dtype = Dtype::kFloat32, .condition_cache = 0}, {});
  const auto most_held = [&](std::size_t prompts) {
    std::int64_t most = 0;
    const auto look = [&](const Progress& at) {
      if (at.phase == Phase::kDenoise && at.done == 0) most = std::max(most, memory.live_bytes());
    };
    (void)engine.generate({.prompts = std::vector<std::string>(prompts, "a"),
                           .width = 32,
                           .height = 32,
                           .steps = 1,
                           .max_sequence_length = int(kTokens)},
                          {.progress = look});
    return most;
  };
  most_held(1);  // what stays after the first run
  EXPECT_LT(most_held(8), most_held(1) + kTokens * kWidth * std::int64_t(sizeof(float)));
}

}  // namespace braid::whole_runs_test
