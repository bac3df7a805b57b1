// Skipped evaluations: which ones, and that every layout skips the same.
#include "pipeline/sampling/step_cache.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "named_layout.h"
#include "pipeline/deployment/degrees.h"
#include "pipeline/engine/engine.h"

namespace braid::step_cache_test {

namespace fs = std::filesystem;
using testing::ElementsAre;

const fs::path kRoot = BRAID_SOURCE_DIR;

// A denoiser of numbers: its first block adds the step's value, its middle adds 10 times that and
// counts its runs.
struct Fake {
  explicit Fake(const CacheOptions& options) : cache(options, Mesh{}) {
    predict =
        cache.over({.input = [](const DenoiserInput& in, const Tensor&) { return in.noise.x_BLC; },
                    .first = [this](const DenoiserInput&, const Tensor& x) { return x + added; },
                    .middle =
                        [this](const DenoiserInput&, const Tensor& x) {
                          ++runs;
                          return x + 10 * added;
                        },
                    .output = [](const DenoiserInput&, const Tensor& x) { return x; }});
  }
  // The denoiser's output for an input of ones.
  double step(double adds, std::int64_t pictures = 1) {
    added = adds;
    const auto made = predict({.noise = {at::ones({pictures, 2, 3}), at::ones({2, 1})},
                               .text = {},
                               .step = {.number = steps++}},
                              {});
    EXPECT_EQ(made.sizes(), at::IntArrayRef({pictures, 2, 3}));
    return made.flatten()[-1].item<double>();
  }

  StepCache cache;
  PredictPart predict;
  double added = 0;
  int runs = 0, steps = 0;
};

TEST(StepCache, AddsWhatTheLastFullEvaluationAdded) {
  Fake fake({.mode = CacheMode::kFirstBlock, .threshold = 0.1});
  EXPECT_DOUBLE_EQ(fake.step(1), 1 + 1 + 10);
  EXPECT_NEAR(fake.step(1.0625), 1 + 1.0625 + 10, 1e-6);   // 6 % more
  EXPECT_NEAR(fake.step(1.125), 1 + 1.125 + 11.25, 1e-6);  // 12 % more than the full one
  EXPECT_NEAR(fake.step(1.1875), 1 + 1.1875 + 11.25, 1e-6);
  EXPECT_THAT(fake.cache.full_steps(0), ElementsAre(0, 2));
}

TEST(StepCache, AddsUpChangesFromStepToStep) {
  Fake fake({.mode = CacheMode::kAccumulated, .threshold = 0.15, .polynomial = {2, 0, 0.0625}});
  fake.step(1);
  fake.step(1.125);  // 2 x 0.125^2 + 0.0625 = 0.09375
  fake.step(1.125);  // and 0.0625: 0.15625
  fake.step(1.125);
  EXPECT_THAT(fake.cache.full_steps(0), ElementsAre(0, 2));
}

TEST(StepCache, LeavesOutSoManyInARowAtMost) {
  Fake fake({.mode = CacheMode::kFirstBlock, .threshold = 1, .most_in_a_row = 2});
  for (int i = 0; i < 7; ++i) fake.step(1);
  EXPECT_THAT(fake.cache.full_steps(0), ElementsAre(0, 3, 6));
}

TEST(StepCache, DecidesForEachPictureAndForgetsThem) {
  Fake fake({.mode = CacheMode::kFirstBlock, .threshold = 0});
  fake.step(1, 3);
  EXPECT_EQ(fake.runs, 3);
  EXPECT_THAT(fake.cache.full_steps(2), ElementsAre(0));
  fake.cache.forget_pictures();
  fake.steps = 0;
  fake.step(1);
  EXPECT_THAT(fake.cache.full_steps(0), ElementsAre(0));
  EXPECT_THROW((void)fake.cache.full_steps(1), Error);
}

// An input says which it is, so that branches may be missing and pictures come in any order.
TEST(StepCache, TellsBranchesAndPicturesApartByWhatTheInputSays) {
  Fake fake({.mode = CacheMode::kFirstBlock, .threshold = 0.5});
  const auto seen = [&](double adds, const StepInfo& step) {
    fake.added = adds;
    const auto made = fake.predict(
        {.noise = {at::ones({1, 2, 3}), at::ones({2, 1})}, .text = {}, .step = step}, {});
    return made.flatten()[0].item<double>();
  };
  EXPECT_DOUBLE_EQ(seen(1, {.number = 0, .branch = 0, .picture = 0}), 12);
  EXPECT_DOUBLE_EQ(seen(4, {.number = 0, .branch = 1, .picture = 0}), 45);
  EXPECT_DOUBLE_EQ(seen(8, {.number = 0, .branch = 0, .picture = 1}), 89);
  EXPECT_DOUBLE_EQ(seen(8, {.number = 1, .branch = 0, .picture = 1}), 89);
  EXPECT_DOUBLE_EQ(seen(1, {.number = 1, .branch = 0, .picture = 0}), 12);
  EXPECT_EQ(fake.runs, 3);
  EXPECT_DOUBLE_EQ(seen(4, {.number = 7, .branch = 1, .picture = 0}), 45);
  EXPECT_DOUBLE_EQ(seen(40, {.number = 8, .branch = 0, .picture = 1}), 441);
  EXPECT_THAT(fake.cache.full_steps(0), ElementsAre(0));
  EXPECT_THAT(fake.cache.full_steps(1), ElementsAre(0, 8));
}

TEST(StepCache, RefusesOptionsOutOfRange) {
  EXPECT_THROW(StepCache({.threshold = -1}, Mesh{}), InputError);
  EXPECT_THROW(StepCache({.threshold = std::nan("")}, Mesh{}), InputError);
  EXPECT_THROW(StepCache({.most_in_a_row = 0}, Mesh{}), InputError);
  for (const auto& polynomial :
       std::vector<std::vector<double>>{{}, {1, std::nan("")}, {HUGE_VAL}}) {
    EXPECT_THROW(StepCache({.mode = CacheMode::kAccumulated, .polynomial = polynomial}, Mesh{}),
                 InputError);
    EXPECT_NO_THROW(StepCache({.mode = CacheMode::kFirstBlock, .polynomial = polynomial}, Mesh{}));
  }
}

// Three pictures if the layout handles several differently; sizes that no degree divides.
Request request_of(const Layout& layout) {
  return {.prompts = {"a red circle on a blue background"},
          .negative_prompt = "a green square",
          .true_cfg = 2.5,
          .width = 112,
          .height = 80,
          .steps = 6,
          .max_sequence_length = 21,
          .seed = 3,
          .num_images = layout.dp * layout.pp > 1 ? 3 : 1,
          .batch_size = 3};
}

RunFacts ran(const Engine& engine, const Request& request) {
  return engine.generate(request, {}, {.record = RecordTensors::kYes}).facts;
}

PipelineOptions options_of(const CacheOptions& cache, const Layout& layout = {},
                           const Memory& memory = {}) {
  return {.model = kRoot / "models/demo",
          .dtype = Dtype::kFloat32,
          .threads = degrees_of(layout).product(),
          .layout = layout,
          .memory = memory,
          .cache = cache};
}

constexpr double kSome = 0.25;  // skips some of the bundled model's six steps

const NamedLayout kLayouts[] = {{"Tp2", {.tp = 2}}, {"Ring2", {.ring = 2}}};
const NamedLayout kMoreLayouts[] = {{"Ulysses3", {.ulysses = 3}},
                                    {"Cfg2", {.cfg = 2}},
                                    {"Dp2", {.dp = 2}},
                                    {"LayerSplit3", {.pp = 3}},
                                    {"LayerSplit8", {.pp = 8}},
                                    {"Tp2Cfg2LayerSplit2", {.tp = 2, .cfg = 2, .pp = 2}},
                                    {"Ring2LayerSplit2", {.ring = 2, .pp = 2}}};

class CachedLayouts : public testing::TestWithParam<NamedLayout> {};
INSTANTIATE_TEST_SUITE_P(All, CachedLayouts, testing::ValuesIn(kLayouts), name_of_layout);
INSTANTIATE_TEST_SUITE_P(Slow, CachedLayouts, testing::ValuesIn(kMoreLayouts), name_of_layout);

TEST_P(CachedLayouts, LeaveOutTheSameAsOneRank) {
  const CacheOptions cache{.mode = CacheMode::kFirstBlock, .threshold = kSome};
  const auto& layout = GetParam().layout;
  auto alone = options_of(cache);
  alone.threads = degrees_of(layout).product();
  const auto one = ran(Engine(alone, {}), request_of(layout));
  const auto many = ran(Engine(options_of(cache, layout), {}), request_of(layout));
  EXPECT_EQ(many.full_steps, one.full_steps);
  EXPECT_EQ(one.full_steps.size(), std::size_t(request_of(layout).num_images));
  EXPECT_GT(one.full_steps.front().size(), 1u);
  EXPECT_LT(one.full_steps.front().size(), 6u);
  const auto& want = one.recording.at("latents_final");
  EXPECT_LT((many.recording.at("latents_final") - want).abs().max().item<double>(),
            1e-5 * want.abs().max().item<double>());
}

TEST(SlowCachedPictures, HaveTheSameBytesWhereNothingIsLeftOut) {
  const auto whole = ran(Engine(options_of({}), {}), request_of({}));
  const CacheOptions never{.mode = CacheMode::kFirstBlock, .threshold = 0};
  const auto cached = ran(Engine(options_of(never), {}), request_of({}));
  EXPECT_THAT(cached.full_steps, ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5)));
  EXPECT_TRUE(whole.full_steps.empty());
  EXPECT_TRUE(at::equal(whole.recording.at("latents_final"), cached.recording.at("latents_final")));
}

TEST(SlowCachedPictures, AreTheSameAgainAndWithPages) {
  const CacheOptions cache{.mode = CacheMode::kAccumulated, .threshold = kSome};
  const Engine engine(options_of(cache), {});
  const auto first = ran(engine, request_of({}));
  auto other = request_of({});
  other.seed = 99;
  (void)ran(engine, other);
  const auto again = ran(engine, request_of({}));
  EXPECT_LT(first.full_steps.front().size(), 6u);
  EXPECT_TRUE(at::equal(first.recording.at("latents_final"), again.recording.at("latents_final")));
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kLeaf}) {
    const Memory memory{.offload = {.transformer = mode}};
    const auto paged = ran(Engine(options_of(cache, {}, memory), {}), request_of({}));
    EXPECT_EQ(paged.full_steps, first.full_steps);
    EXPECT_TRUE(
        at::equal(first.recording.at("latents_final"), paged.recording.at("latents_final")));
  }
}

TEST(CachedPictures, AreForgottenWhereAStepFails) {
  const Engine engine(options_of({.mode = CacheMode::kAccumulated, .threshold = kSome}), {});
  const auto first = ran(engine, request_of({}));
  const Hooks failing{.progress = [&](const Progress& progress) {
    if (progress.phase == Phase::kDenoise && progress.done == 3) throw std::runtime_error("enough");
  }};
  EXPECT_THROW((void)engine.generate(request_of({}), failing), std::runtime_error);
  const auto again = ran(engine, request_of({}));
  EXPECT_EQ(again.full_steps, first.full_steps);
  EXPECT_TRUE(at::equal(first.recording.at("latents_final"), again.recording.at("latents_final")));
}

// Each family's transformer can be divided into the four parts.
TEST(CachedPictures, OfEveryFamilyHaveTheSameBytesWhereNothingIsLeftOut) {
  for (const char* model : {"klein", "flux2-dev", "zimage-turbo"}) {
    SCOPED_TRACE(model);
    auto options = options_of({});
    options.model = kRoot / "tests/data/parity" / model / "model";
    const Request request{.prompts = {"a circle"}, .width = 112, .height = 80, .steps = 3};
    const auto whole = ran(Engine(options, {}), request);
    options.cache = {.mode = CacheMode::kFirstBlock, .threshold = 0};
    const auto cached = ran(Engine(options, {}), request);
    EXPECT_TRUE(
        at::equal(whole.recording.at("latents_final"), cached.recording.at("latents_final")));
    options.cache.threshold = 1e6;
    EXPECT_THAT(ran(Engine(options, {}), request).full_steps, ElementsAre(ElementsAre(0)));
  }
}

}  // namespace braid::step_cache_test
