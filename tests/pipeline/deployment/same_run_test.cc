// Ranks as processes compare what a picture depends on before they draw it together.
#include "pipeline/deployment/same_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "comm/worlds.h"
#include "edit_json.h"
#include "pictures.h"
#include "temporary_folder.h"

namespace braid::same_run_test {

using testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path kDemo = fs::path(BRAID_SOURCE_DIR) / "models/demo";
constexpr int kSide = 64;

PipelineOptions usual_options() { return {.model = kDemo, .layout = {.tp = 2}}; }

Request usual_request() {
  return {.prompts = {"a red circle"}, .width = kSide, .height = kSide, .steps = 2};
}

// A rank that is a process says so in its layout; here they are threads that say the same.
Deployment as_process(const PipelineOptions& options) {
  auto deployment = deploy(options);
  deployment.options.layout.ranks = Ranks::kProcesses;
  return deployment;
}

using Compare = std::function<void(const Group&, bool is_second)>;

std::string refusal_of(const Compare& compare) {
  return failure_of([&] {
    run_over(Over::kThreads, {.size = 2},
             [&](const Group& world) { compare(world, world.rank() == 1); });
  });
}

std::string refusal_of_models(const PipelineOptions& first, const PipelineOptions& second) {
  const auto one = as_process(first), other = as_process(second);
  return refusal_of([&](const Group& world, bool is_second) {
    check_same_model(world, is_second ? other : one);
  });
}

std::string refusal_of_requests(const Request& first, const Request& second) {
  const auto deployment = as_process(usual_options());
  const auto& limits = deployment.family->description().limits;
  return refusal_of([&](const Group& world, bool is_second) {
    const auto& mine = is_second ? second : first;
    check_same_request(world, deployment, mine, settle(mine, limits, {}), {});
  });
}

TEST(SameRun, IsOneOfTheSameOptionsAndRequest) {
  EXPECT_EQ(refusal_of_models(usual_options(), usual_options()), "");
  EXPECT_EQ(refusal_of_requests(usual_request(), usual_request()), "");
}

// Other commands make other calls: nothing else can be compared before.
TEST(SameRun, IsOneOfTheSameCommand) {
  auto one = as_process(usual_options()), other = one;
  one.command = "generate", other.command = "serve";
  EXPECT_THAT(refusal_of([&](const Group& world, bool is_second) {
                check_same_command(world, is_second ? other : one);
              }),
              HasSubstr("the ranks should run the same command, but rank 1 has the command serve "
                        "and rank 0 has generate"));
}

TEST(SameRun, ComparesOptionsThatChangeThePicture) {
  const std::map<std::string, std::function<void(PipelineOptions&)>> changes = {
      {"form of weights", [](auto& o) { o.memory.quantize = Quantize::kInt8; }},
      {"layers that stay dense", [](auto& o) { o.memory.keep_dense = {"img_in"}; }},
      {"way of adding LoRAs", [](auto& o) { o.adapter_mode = AdapterMode::kUnmerged; }},
      {"cache", [](auto& o) { o.cache.mode = CacheMode::kFirstBlock; }},
      {"modulation under tensor", [](auto& o) { o.layout.modulation = SharedModulation::kNo; }},
      {"ranks of the text encoders", [](auto& o) { o.layout.text = TextRanks::kShared; }},
      {"ranks that decode", [](auto& o) { o.layout.decode = DecodeRanks::kFirst; }},
      {"form of the ring", [](auto& o) { o.layout.ring_form = RingForm::kGather; }}};
  for (const auto& [name, change] : changes) {
    auto other = usual_options();
    change(other);
    EXPECT_THAT(refusal_of_models(usual_options(), other),
                HasSubstr("rank 1 differs from rank 0 in the " + name));
  }
}

TEST(SameRun, MayLieElsewhereOnEachRank) {
  auto other = usual_options();
  other.memory.offload = {.transformer = OffloadMode::kBlock};
  other.layout.deadline = 5;
  other.threads = 1;
  EXPECT_EQ(refusal_of_models(usual_options(), other), "");
}

TEST(SameRun, ComparesConfigurationsButNotTheirNotes) {
  const TemporaryFolder folder;
  const auto copy_with = [&](const std::string& name, const std::string& file,
                             const std::string& field, const Json& value) {
    const auto copy = folder / name;
    fs::copy(kDemo, copy, fs::copy_options::recursive);
    edit_json(copy / file, [&](Json& json) { json[field] = value; });
    auto options = usual_options();
    options.model = copy;
    return options;
  };
  const std::string transformer = "transformer/config.json",
                    scheduler = "scheduler/scheduler_config.json";
  EXPECT_EQ(refusal_of_models(usual_options(),
                              copy_with("noted", transformer, "_diffusers_version", "0.1")),
            "");
  EXPECT_THAT(refusal_of_models(usual_options(),
                                copy_with("field", transformer, "axes_dims_rope", {6, 4, 6})),
              HasSubstr("rank 1 differs from rank 0 in the configuration of the transformer"));
  EXPECT_THAT(refusal_of_models(usual_options(), copy_with("shift", scheduler, "shift", 6)),
              HasSubstr("rank 1 differs from rank 0 in the configuration of the scheduler"));
}

Request with_picture() {
  auto request = usual_request();
  request.pictures.init = request.pictures.mask = grey_picture(kSide, kSide, 128);
  return request;
}

TEST(SameRun, ComparesRequests) {
  const std::map<std::string, std::function<void(Request&)>> changes = {
      {"has seed 1 and", [](auto& r) { r.seed = 1; }},
      {"has steps 3 and", [](auto& r) { r.steps = 3; }},
      {"differs from rank 0 in the prompts", [](auto& r) { r.prompts = {"a blue circle"}; }},
      {"differs from rank 0 in the tiling of the autoencoder",
       [](auto& r) { r.vae_tiling = VaeTiling::kOn; }},
      {"differs from rank 0 in the form of the result",
       [](auto& r) { r.output = Output::kLatents; }},
      {"differs from rank 0 in the initial picture or mask",
       [](auto& r) { r.pictures.padding_crop = 8; }},
      {"differs from rank 0 in the strength", [](auto& r) { r.pictures.strength = 0.5; }}};
  for (const auto& [fact, change] : changes) {
    auto other = with_picture();
    change(other);
    EXPECT_THAT(refusal_of_requests(with_picture(), other), HasSubstr("rank 1 " + fact));
  }
  auto begun = usual_request();
  begun.latents = Latents{.shape = {1, 1, 1}, .values = {0.5F}};
  EXPECT_THAT(refusal_of_requests(usual_request(), begun),
              HasSubstr("rank 1 differs from rank 0 in the initial latents"));
}

}  // namespace braid::same_run_test
