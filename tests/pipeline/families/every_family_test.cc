// The small model of each family: every form of its weights and of a request. every_layout_test.cc
// shares it out, the families' own files have what only they do.
#include <gtest/gtest.h>

#include "pipeline/conversion/convert.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/proofs/bench.h"
#include "small_models.h"
#include "temporary_folder.h"

namespace braid::every_family_test {

namespace fs = std::filesystem;

class EveryFamily : public testing::TestWithParam<const SmallModel*> {
 protected:
  const SmallModel& model() const { return *GetParam(); }
  Drawn drawn(const Layout& layout, const Memory& memory = {}) const {
    return model().drawn(model().with(layout, memory));
  }
  Drawn guided(const Layout& layout, const Memory& memory = {}) const {
    return model().drawn(model().with(layout, memory), model().guided);
  }
  Tensor latents_from(const fs::path& folder, const fs::path& components = {}) const {
    auto options = model().with();
    options.model = folder;
    options.components = components;
    return model().drawn(options)["latents_final"];
  }
};

TEST_P(EveryFamily, DrawsPromptsOfAnyLengthsAsIfTheyWereAlone) {
  auto request = model().guided;
  request.prompts = {"a star", "", *request.negative_prompt, "猫と 🎨"};
  request.batch_size = 3;
  const auto together = model().drawn(model().with(), request);
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    auto alone = request;
    alone.prompts = {request.prompts[i]};
    alone.seed = request.seed + i;
    const auto want = model().drawn(model().with(), alone)["latents_final"];
    const auto got = together["latents_final"].narrow(0, std::int64_t(i), 1);
    EXPECT_LT(relative_error(got, want), 1e-5) << "prompt " << i;
  }
}

class SlowEveryFamily : public EveryFamily {};

TEST_P(SlowEveryFamily, RunsEveryLayoutInBfloat16) {
  const auto in_bfloat16 = [&](const Layout& layout) {
    auto options = model().with(layout);
    options.dtype = Dtype::kBfloat16;
    return model().drawn(options, model().guided);
  };
  const auto one = in_bfloat16({});
  for (const Layout& layout :
       {Layout{.tp = 2, .text = TextRanks::kShared}, Layout{.tp = model().most_tp},
        Layout{.ring = 2}, Layout{.pp = 2}, Layout{.cfg = 2}}) {
    const auto got = in_bfloat16(layout);
    EXPECT_TRUE(at::equal(got["latents_initial"], one["latents_initial"]));
    const auto error = (got["velocity_first"] - one["velocity_first"]).norm();
    EXPECT_LT((error / one["velocity_first"].norm()).item<double>(), 0.05);
  }
}

// A request for what others did not need comes between them: then blocks are not used in turn.
TEST_P(EveryFamily, KeepsItsBitsWhereverItsWeightsAre) {
  const auto guided = this->guided({}), plain = drawn({});
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode, .text = mode, .vae = mode}};
    const Engine engine(model().with({}, memory), {});
    for (const auto& [request, want] :
         {std::pair{&model().guided, &guided}, {&model().plain, &plain}}) {
      const auto got = engine.generate(*request, {}, {.record = RecordTensors::kYes});
      EXPECT_TRUE(at::equal(got.facts.recording.at("latents_final"), (*want)["latents_final"]))
          << int(mode);
    }
  }
}

// The first block tells whether the others may be left out.
TEST_P(EveryFamily, LeavesOutBlocksThatWouldRepeatThemselves) {
  auto request = model().guided;
  request.steps = 4;
  const auto plain = model().drawn(model().with(), request);
  const auto cached = [&](double threshold) {
    auto options = model().with();
    options.cache = {.mode = CacheMode::kFirstBlock, .threshold = threshold};
    return model().drawn(options, request);
  };
  const auto much = cached(1e9), little = cached(1e-6);
  EXPECT_TRUE(at::equal(much["velocity_first"], plain["velocity_first"]));
  EXPECT_GT(relative_error(much["latents_final"], plain["latents_final"]), 1e-4);
  EXPECT_LT(relative_error(little["latents_final"], plain["latents_final"]), 1e-6);
}

TEST_P(EveryFamily, LeavesOutBlocksOfPicturesInABatch) {
  auto request = model().guided;
  request.prompts = {request.prompts.front(), *request.negative_prompt};
  const auto cached = [&](int batch_size) {
    request.batch_size = batch_size;
    auto options = model().with();
    options.cache = {.mode = CacheMode::kFirstBlock, .threshold = 0.5};
    return model().drawn(options, request)["latents_final"];
  };
  EXPECT_LT(relative_error(cached(2), cached(1)), 1e-5);
}

TEST_P(EveryFamily, IsConvertedToTheWeightsThatItsQuantizationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto quantized = drawn({}, int8)["latents_final"];
  EXPECT_GT(relative_error(quantized, drawn({})["latents_final"]), 0);
  const TemporaryFolder scratch;
  const auto out = scratch / "int8";
  convert({.model = model().folder, .out = out, .dtype = Dtype::kFloat32, .memory = int8});
  for (const auto* index : {"model_index.json", kModularIndex})
    EXPECT_EQ(is_there(out / index), is_there(model().folder / index)) << index;
  EXPECT_TRUE(at::equal(quantized, latents_from(out)));
}

// The few numbers beside the codes say in what the others are computed.
TEST_P(EveryFamily, IsComputedInItsOwnDtypeFromCodes) {
  auto quantized = model().with({}, {.quantize = Quantize::kInt8});
  quantized.dtype = Dtype::kAuto;
  const TemporaryFolder scratch;
  convert({.model = model().folder, .out = scratch / "int8", .memory = quantized.memory});
  auto converted = model().from(scratch / "int8");
  converted.dtype = Dtype::kAuto;
  EXPECT_TRUE(at::equal(model().drawn(converted)["latents_final"],
                        model().drawn(quantized)["latents_final"]));
}

TEST_P(EveryFamily, IsConvertedToOneFileAndBack) {
  const TemporaryFolder scratch;
  const auto one = scratch / "one.safetensors", back = scratch / "back";
  convert({.model = model().folder, .out = one, .form = ConvertOptions::Form::kSingleFile});
  const auto want = drawn({})["latents_final"];
  EXPECT_TRUE(at::equal(latents_from(one, model().folder), want));
  convert({.model = one, .components = model().folder, .out = back});
  EXPECT_TRUE(at::equal(latents_from(back), want));
}

TEST_P(EveryFamily, SharesQuantizedWeightsToTheSameCodes) {
  const Memory int8{.quantize = Quantize::kInt8};
  const auto one = drawn({}, int8)["velocity_first"];
  for (const int tp : {2, model().most_tp})
    EXPECT_LT(relative_error(drawn({.tp = tp}, int8)["velocity_first"], one), 1e-5) << tp;
}

TEST_P(EveryFamily, IsTimed) {
  const auto timed = bench(deploy(model().with({.tp = 2})), {.probe = model().probe, .runs = 1});
  EXPECT_EQ(timed.num_ranks, 2);
  EXPECT_EQ(timed.tokens, model().probe_tokens);
}

TEST_P(EveryFamily, GuidesOnTwoRanksToTheSameBits) {
  const auto one = guided({});
  EXPECT_TRUE(at::equal(guided({.cfg = 2})["latents_final"], one["latents_final"]));
  EXPECT_GT(relative_error(one["latents_final"], drawn({})["latents_final"]), 1e-3);
}

TEST_P(EveryFamily, DrawsPicturesOnTwoRanks) {
  auto request = model().guided;
  request.num_images = request.batch_size = 2;
  const auto one = model().drawn(model().with(), request);
  expect_as_drawn(model().drawn(model().with({.dp = 2}), request), one, model().magnified);
}

INSTANTIATE_TEST_SUITE_P(All, SlowEveryFamily,
                         testing::Values(&kZImage, &kKrea2, &kQwenImage, &kQwen21, &kFlux3));
INSTANTIATE_TEST_SUITE_P(ZImage, EveryFamily, testing::Values(&kZImage));
INSTANTIATE_TEST_SUITE_P(Krea2, EveryFamily, testing::Values(&kKrea2));
INSTANTIATE_TEST_SUITE_P(QwenImage, EveryFamily, testing::Values(&kQwenImage));
INSTANTIATE_TEST_SUITE_P(Qwen21, EveryFamily, testing::Values(&kQwen21));
INSTANTIATE_TEST_SUITE_P(Flux3, EveryFamily, testing::Values(&kFlux3));

}  // namespace braid::every_family_test
