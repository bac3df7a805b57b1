// A model's transformer alone, against the evaluations of a whole pipeline.
#include "braid/transformer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <span>

#include "comm/launch.h"
#include "message_of.h"
#include "own_ranks.h"
#include "wave_latents.h"
#include "weights/sources/identity.h"

namespace braid::transformer_test {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kHidden = 192;  // of the bundled model

PipelineOptions options_with(const Layout& layout = {}, const CacheOptions& cache = {}) {
  return {.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo",
          .dtype = Dtype::kFloat32,
          .layout = layout,
          .cache = cache};
}

// A picture of 64 x 48 pixels for the bundled model.
TransformerInput input_of(double pace, std::int64_t text_tokens = 9) {
  return {.latents = waves({1, 12, 64}, pace),
          .text = waves({1, text_tokens, 128}, 2 * pace),
          .pooled = waves({1, 128}, 3 * pace),
          .timesteps = {0.7f},
          .guidance = {3.5f},
          .width = 64,
          .height = 48};
}

std::string refusal(const Transformer& transformer, const TransformerInput& input) {
  return message_of([&] { (void)transformer.velocity(input); });
}

TEST(Transformer, ComputesTheSameUnderEveryLayout) {
  const auto want = Transformer(options_with()).velocity(input_of(0.37));
  EXPECT_THAT(want.shape, ElementsAre(1, 12, 64));
  for (const auto& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.pp = 2}})
    EXPECT_LT(largest_difference(Transformer(options_with(layout)).velocity(input_of(0.37)), want),
              1e-5);
}

TransformerInput two_pictures() {
  auto input = input_of(0.37);
  input.latents = waves({2, 12, 64}, 0.37);
  input.text = waves({2, 9, 128}, 0.74);
  input.pooled = waves({2, 128}, 1.11);
  input.timesteps = {0.7f, 0.4f};
  input.guidance = {3.5f, 2.0f};
  return input;
}

const Layout kLayoutsOfTwo[] = {{.tp = 2}, {.ring = 2}, {.ulysses = 2}, {.dp = 2}, {.pp = 2}};

std::string text_of_velocity(const Latents& velocity) {
  return digest(std::as_bytes(std::span(velocity.values)));
}

// One thread for each rank.
PipelineOptions shared_by_two(Layout layout, Ranks ranks) {
  layout.ranks = ranks;
  auto options = options_with(layout);
  options.threads = 2;
  return options;
}

TEST(RankOfTransformer, PrintsItsVelocity) {
  if (!read_launch()) GTEST_SKIP() << "a rank of another test";
  for (const auto& layout : kLayoutsOfTwo) {
    const Transformer transformer(shared_by_two(layout, Ranks::kProcesses));
    std::cout << text_of_velocity(transformer.velocity(two_pictures())) << "\n";
    const bool is_first = std::getenv("RANK") == std::string("0");
    const auto other_latents = input_of(is_first ? 0.37 : 0.11);
    auto other_guidance = two_pictures();
    if (!is_first) other_guidance.guidance = {3.5f, 2.5f};
    for (const auto& input : {other_latents, other_guidance})
      std::cout << message_of<Error>([&] { (void)transformer.velocity(input); }) << "\n";
  }
}

// Whose callers go on with it, each for itself.
TEST(SlowTransformerOfProcesses, GivesItsVelocityToEveryRank) {
  OwnRanks ranks(2, "RankOfTransformer.PrintsItsVelocity");
  const std::string first = ranks.finish(0), second = ranks.finish(1);
  for (const auto& layout : kLayoutsOfTwo) {
    const Transformer threads(shared_by_two(layout, Ranks::kThreads));
    const auto want = text_of_velocity(threads.velocity(two_pictures()));
    EXPECT_THAT(first, HasSubstr(want));
    EXPECT_THAT(second, HasSubstr(want));
  }
  for (const char* const what : {"latents", "guidance scales"})
    EXPECT_THAT(first, HasSubstr(text_of("the ranks have different ", what, ": rank 1 differs")));
}

// Evaluations are those of any pictures, in any order: none may be made of an earlier one.
TEST(Transformer, KeepsNothingFromOneEvaluationToTheNext) {
  const Transformer plain(options_with());
  const Transformer cached(options_with({}, {.mode = CacheMode::kFirstBlock, .threshold = 100}));
  for (const auto& input : {input_of(0.37), input_of(0.11), input_of(0.37, 5), input_of(0.37)})
    EXPECT_EQ(cached.velocity(input).values, plain.velocity(input).values);
}

// The residuals of a caller's ControlNets, which ranks divide as they do the tokens.
TEST(Transformer, AddsResidualsUnderEveryLayout) {
  const Transformer alone(options_with());
  auto input = input_of(0.37);
  const auto plain = alone.velocity(input);
  input.double_residuals = {waves({1, 12, kHidden}, 0.21), waves({1, 12, kHidden}, 0.13)};
  input.single_residuals = {waves({1, 12, kHidden}, 0.17)};
  const auto want = alone.velocity(input);
  EXPECT_GT(largest_difference(want, plain), 0.01);
  for (const auto& layout : {Layout{.tp = 2}, Layout{.ring = 2}, Layout{.pp = 2}})
    EXPECT_LT(largest_difference(Transformer(options_with(layout)).velocity(input), want), 1e-5);
}

// Each rank has a share of the noise and of each reference, whose residuals lie likewise.
TEST(Transformer, AddsResidualsBesideReferencesUnderEveryLayout) {
  const Transformer alone(options_with());
  auto input = input_of(0.37);
  input.latents = waves({1, 12 + 7, 64}, 0.37);
  input.num_references = 7;
  input.latent_ids = waves({12 + 7, 3}, 0.05);
  input.text_ids = waves({9, 3}, 0.07);
  const auto plain = alone.velocity(input);
  input.double_residuals = {waves({1, 12 + 7, kHidden}, 0.21)};
  input.single_residuals = {waves({1, 12 + 7, kHidden}, 0.17)};
  const auto want = alone.velocity(input);
  EXPECT_GT(largest_difference(want, plain), 0.01);
  for (const auto& layout : {Layout{.ring = 2}, Layout{.ulysses = 2}, Layout{.ring = 3}})
    EXPECT_LT(largest_difference(Transformer(options_with(layout)).velocity(input), want), 1e-5);
}

TEST(Transformer, AddsResidualsBesideReferencesOfQwenImageToo) {
  auto options = options_with();
  options.model = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/qwen-image/model";
  constexpr std::int64_t kTokens = 12 + 7;
  TransformerInput input{.latents = waves({1, kTokens, 16}, 0.37),
                         .text = waves({1, 9, 24}, 0.74),
                         .timesteps = {0.7f},
                         .latent_ids = waves({kTokens, 3}, 0.05),
                         .text_ids = waves({9, 3}, 0.07),
                         .num_references = 7};
  const auto plain = Transformer(options).velocity(input);
  input.double_residuals = {waves({1, kTokens, 32}, 0.21)};
  const auto want = Transformer(options).velocity(input);
  EXPECT_GT(largest_difference(want, plain), 0.01);
  options.layout = {.ring = 2};
  EXPECT_LT(largest_difference(Transformer(options).velocity(input), want), 1e-5);
}

TEST(Transformer, RefusesWhatDoesNotFitByName) {
  const Transformer transformer(options_with());
  auto input = input_of(0.37);
  input.latents = waves({1, 11, 64}, 0.37);
  EXPECT_THAT(refusal(transformer, input), HasSubstr("has 12 tokens, not 11"));
  input = input_of(0.37);
  input.text = waves({1, 9, 3}, 0.37);
  EXPECT_THAT(refusal(transformer, input), HasSubstr("text embeddings should be "));
  input = input_of(0.37);
  input.single_residuals = {waves({1, 12, 3}, 0.37)};
  EXPECT_THAT(refusal(transformer, input), HasSubstr("residuals of single blocks should have "));
  input = input_of(0.37);
  input.timesteps = {0.7f, 0.3f};
  EXPECT_THAT(refusal(transformer, input), HasSubstr("timesteps should have one value for each"));
  input = input_of(0.37);
  input.target_timesteps = {0.3f};
  EXPECT_THAT(refusal(transformer, input), HasSubstr("target timesteps are for flow maps"));
  input = input_of(0.37);
  input.reference_places = {{.num_tokens = 2, .text_before = 1}};
  EXPECT_THAT(refusal(transformer, input), HasSubstr("amid the text, which this one is not"));
  input = input_of(0.37);
  input.latent_ids = waves({12, 2}, 0.37);
  input.text_ids = waves({9, 3}, 0.37);
  EXPECT_THAT(refusal(transformer, input), HasSubstr("positions should have 3 axes"));
  EXPECT_THAT(message_of([] { Transformer(options_with({.cfg = 2})); }),
              HasSubstr("one branch of guidance at a time"));
}

TEST(Transformer, RefusesShapesThatNoPicturesHave) {
  const Transformer transformer(options_with());
  auto input = input_of(0.37);
  input.latents = waves({1, -12, -64}, 0.37);
  EXPECT_THAT(refusal(transformer, input), HasSubstr("latents of shape [1, -12, -64] have 768"));
  input = input_of(0.37);
  input.latents = {.shape = {0, 12, 64}, .values = {}};
  EXPECT_THAT(refusal(transformer, input), HasSubstr("latents of shape [0, 12, 64] have 0 values"));
  input = input_of(0.37);
  input.text.shape = {std::int64_t(1) << 32, std::int64_t(1) << 32, 1};
  EXPECT_THAT(refusal(transformer, input), HasSubstr("text embeddings of shape [4294967296, "));
  input = input_of(0.37);
  input.pooled = waves({2, 128}, 0.37);
  EXPECT_THAT(refusal(transformer, input), HasSubstr("1 pictures, but pooled embeddings of 2"));
  input = input_of(0.37);
  input.width = -64, input.height = -48;  // of as many tokens
  EXPECT_THAT(refusal(transformer, input), HasSubstr("should be above 0, they are -64 and -48"));
}

TEST(Transformer, RefusesNumbersThatAreNotFinite) {
  const Transformer transformer(options_with());
  const std::vector<std::pair<const char*, std::function<void(TransformerInput&)>>> cases = {
      {"latents", [](TransformerInput& in) { in.latents.values[3] = NAN; }},
      {"text embeddings", [](TransformerInput& in) { in.text.values[3] = INFINITY; }},
      {"pooled embeddings", [](TransformerInput& in) { in.pooled.values[3] = NAN; }},
      {"timesteps", [](TransformerInput& in) { in.timesteps = {NAN}; }},
      {"target timesteps", [](TransformerInput& in) { in.target_timesteps = {INFINITY}; }},
      {"guidance scales", [](TransformerInput& in) { in.guidance = {-INFINITY}; }},
      {"positions of latents", [](TransformerInput& in) { in.latent_ids.values[3] = NAN; }},
      {"positions of text", [](TransformerInput& in) { in.text_ids.values[3] = NAN; }},
      {"residuals of double blocks",
       [](TransformerInput& in) { in.double_residuals[0].values[3] = NAN; }}};
  for (const auto& [name, spoil] : cases) {
    auto input = input_of(0.37);
    input.latent_ids = waves({12, 3}, 0.37);
    input.text_ids = waves({9, 3}, 0.37);
    input.double_residuals = {waves({1, 12, kHidden}, 0.21)};
    spoil(input);
    EXPECT_THAT(refusal(transformer, input),
                HasSubstr(text_of("values of ", name, " should be finite numbers, one is ")));
  }
}

TEST(Transformer, TakesPositionsOfBothOrNone) {
  const Transformer transformer(options_with());
  auto input = input_of(0.37);
  input.text_ids = waves({9, 3}, 0.37);
  EXPECT_THAT(refusal(transformer, input), HasSubstr("positions of latents should have 2 dim"));
  input.latent_ids.shape = {12, 3};
  EXPECT_THAT(refusal(transformer, input), HasSubstr("positions of latents of shape [12, 3] have"));
  input.latent_ids = waves({12, 3}, 0.37);
  EXPECT_EQ(refusal(transformer, input), "");
  input.text_ids = {};
  EXPECT_THAT(refusal(transformer, input), HasSubstr("positions of text should have 2 dim"));
}

}  // namespace braid::transformer_test
