// What whole runs report of their traffic and their reading: text encoders, autoencoder and the
// question whether to stop are in it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pipeline/engine.h"
#include "pipeline/planner/traffic.h"
#include "traffic_text.h"

namespace braid {
namespace {

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
  TrafficByAxis step;
  engine.generate({.prompts = {"a"},
                   .negative_prompt = "b",
                   .true_cfg = 2,
                   .width = 80,
                   .height = 48,
                   .steps = 2,
                   .max_sequence_length = 9,
                   .num_images = 3,
                   .batch_size = 2},
                  {}, nullptr, &step);
  auto job = job_of_model(options);
  job.width = 80;
  job.height = 48;
  job.text_tokens = 9;
  // of the first rank: of the three pictures, two or, where each stage has a batch, all
  job.batch_size = layout.layer_split > 1 ? 3 : 2;
  job.branches = 2;
  const Grid grid{.dp = layout.dp,
                  .cfg = layout.cfg,
                  .layers = layout.layer_split,
                  .ring = layout.ring,
                  .ulysses = layout.ulysses,
                  .tp = layout.tp};
  const auto& m = job.model;
  const Stage first =
      stage_of(m.flux, share_of(m.flux.num_double + m.flux.num_single, 0, layout.layer_split));
  EXPECT_EQ(text_of_traffic(step), text_of_traffic(predict_traffic(job, grid, 0, first)));

  const auto files = find_model(options);
  const auto stored = [](const Checkpoint& checkpoint) {
    return std::int64_t(c10::elementSize(checkpoint.dtype()));
  };
  const auto vae = stored(files.open_vae()) * count_vae_decoder(m.vae);
  ASSERT_EQ(engine.bytes_read().size(), std::size_t(grid.ranks()));
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const auto place = place_of(grid, rank).layers;
    const auto stage = stage_of(
        m.flux, share_of(m.flux.num_double + m.flux.num_single, place, layout.layer_split));
    const int sharers = layout.shard_text ? grid.tp : 1;
    const auto text =
        stored(files.open_text_encoder("text_encoder")) * count_clip(m.clip).of_rank(sharers) +
        stored(files.open_text_encoder("text_encoder_2")) * count_t5(m.t5).of_rank(sharers);
    const auto flux = stored(files.open_transformer()) *
                      parameters_of(stage, count_flux(m.flux, job.modulation)).of_rank(grid.tp);
    EXPECT_EQ(engine.bytes_read()[std::size_t(rank)].all,
              flux + (rank < sharers ? text : 0) + (rank == 0 || layout.share_decode ? vae : 0))
        << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, WholeRuns,
    testing::Values(WholeRun{"models/demo", {}}, WholeRun{"models/demo", {.tp = 3}},
                    WholeRun{"models/demo", {.tp = 2, .ring = 2}},
                    WholeRun{"models/demo", {.ulysses = 2, .cfg = 2}},
                    WholeRun{"models/demo", {.tp = 2, .dp = 2}},
                    WholeRun{"models/demo", {.layer_split = 3}},
                    WholeRun{"models/demo", {.tp = 2, .layer_split = 2, .shard_text = true}},
                    WholeRun{"models/demo", {.tp = 4, .shard_text = true, .share_decode = false}},
                    WholeRun{"tests/data/parity/basic/model", {.tp = 2}},
                    WholeRun{"tests/data/parity/schnell/model", {.ring = 3}},
                    WholeRun{"tests/data/parity/prefixed/model", {.tp = 5}},
                    WholeRun{"tests/data/parity/sharded/model", {.tp = 2, .ulysses = 2}}));

}  // namespace
}  // namespace braid
