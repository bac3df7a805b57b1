// JoyAI-Image-Edit under every layout and wherever its weights live; joy_test.cc compares it with
// diffusers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "edit_json.h"
#include "joy_model.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/proofs/verify.h"
#include "predicted.h"
#include "temporary_folder.h"

namespace braid::joy_layouts_test {

// 256 image tokens, 21 of text: no degree below divides the latter.
const Request kPlain{
    .prompts = {"a small red circle"}, .steps = 2, .max_sequence_length = 21, .seed = 3};

struct NamedLayout {
  const char* name;
  Layout layout;
};
// A picture has a megapixel, the least that the model draws.
const NamedLayout kLayouts[] = {
    {"Ulysses2", {.ulysses = 2}},
    {"Tp2WithText", {.tp = 2, .text = TextRanks::kShared}},
    {"Ring3Gathered", {.ring = 3, .ring_form = RingForm::kGather}},
    {"Cfg2", {.cfg = 2}},
    {"Tp2", {.tp = 2}},
    {"Tp2WholeModulation", {.tp = 2, .modulation = SharedModulation::kNo}},
    {"Ring2", {.ring = 2}},
    {"Cfg2Tp2", {.tp = 2, .cfg = 2}},
    {"LayerSplit2", {.pp = 2}},
};

class JoyLayouts : public testing::TestWithParam<NamedLayout> {
 protected:
  static PipelineOptions options() { return joy_with(GetParam().layout); }
  static const Recording& one_rank() {
    static const auto recording = recorded_latents(joy_with(), joy_request());
    return recording;
  }
};
const auto kNameOf = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(Slow, JoyLayouts, testing::ValuesIn(kLayouts), kNameOf);

// Ranks that have a branch each do what one rank does, to the bit.
TEST_P(JoyLayouts, EqualOneRank) {
  const auto got = recorded_latents(options(), joy_request());
  const bool has_same_sums = GetParam().layout.cfg == degrees_of(GetParam().layout).product();
  for (const auto* name : {"latents_initial", "sigmas", "timesteps"})
    EXPECT_TRUE(at::equal(got.at(name), one_rank().at(name))) << name;
  for (const auto* name : {"prompt_embeds", "velocity_first", "latents_final"})
    EXPECT_LE(largest_difference(got.at(name), one_rank().at(name)), has_same_sums ? 0 : 1e-5)
        << name;
}

TEST_P(JoyLayouts, AreProven) {
  const ProbeOptions probe{.width = 192, .height = 128, .max_sequence_length = 21};
  EXPECT_EQ(verify(deploy(options()), {.probe = probe}).first_divergent(), nullptr);
}

TEST_P(JoyLayouts, MoveWhatIsPredicted) {
  const auto options = this->options();
  const auto facts = denoised(options, kPlain);
  const auto job = job_of(deploy(options), kPlain);
  const auto degrees = degrees_of(GetParam().layout);
  expect_predicted_traffic(job, degrees, facts);
}

// With stochastic steps the reference draws noise for all items, references among them.
TEST(SlowJoyNoise, OfEveryStepIsTheReferencesOnAllRanks) {
  const TemporaryFolder folder;
  const auto edit = folder.path() / "edit", plus = plus_in(folder.path());
  std::filesystem::copy(kJoy / "model", edit, std::filesystem::copy_options::recursive);
  for (const auto& model : {edit, plus})
    edit_json(model / "scheduler/scheduler_config.json",
              [](Json& config) { config["stochastic_sampling"] = true; });
  const auto want = Checkpoint::open_file(kJoy / "stochastic.safetensors");
  const auto error = [&](const char* name, const PipelineOptions& options, const Request& request) {
    const auto got = recorded_latents(options, request).at("latents_final");
    return largest_difference(got, want.find(name)->view());
  };
  EXPECT_LT(error("edit", joy_with({}, {}, edit), joy_request()), 1e-4);
  EXPECT_LT(error("plus", joy_with({.ring = 2}, {}, plus), plus_request()), 1e-4);
}

// Also the picture's, where the layers of the autoencoder come and go one by one.
TEST(SlowJoyMemory, KeepsItsBitsWhereverItsWeightsAre) {
  const auto memory_of = [](OffloadMode mode) {
    return Memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
  };
  const auto& [pictures, facts] = joy_drawn_plainly();
  const auto& resident = facts.recording;
  const auto leaves = joy_drawn(joy_with({}, memory_of(OffloadMode::kLeaf)), joy_request());
  EXPECT_TRUE(at::equal(leaves.facts.recording.at("latents_final"), resident.at("latents_final")));
  EXPECT_EQ(leaves.pictures.at(0).rgb, pictures.at(0).rgb);
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock}) {
    const auto got = recorded_latents(joy_with({}, memory_of(mode)), joy_request());
    EXPECT_TRUE(at::equal(got.at("latents_final"), resident.at("latents_final"))) << int(mode);
  }
}

}  // namespace braid::joy_layouts_test
