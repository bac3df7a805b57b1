// What the suites of all denoisers share: a fixture's model, its weights with changes, and a model
// against itself, in parts and over several steps.
#pragma once

#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include "denoiser_inputs.h"
#include "message_of.h"
#include "nn/block_list.h"
#include "nn/denoiser_shape.h"

namespace braid {

// The names of tests hold no dashes, those of fixtures do.
inline std::string without_dashes(const testing::TestParamInfo<std::string>& info) {
  auto name = info.param;
  std::erase(name, '-');
  return name;
}

// A suite of single files has one with plain names first, then one with a prefix before each.
inline std::string bare_or_prefixed(const testing::TestParamInfo<std::string>& info) {
  return info.index == 0 ? "bare" : "prefixed";
}

// A fixture and its model: load_model(fixture, checkpoint, dtype, blocks) makes it, or the part of
// it that has these blocks.
template <auto load_model, auto input_of = denoiser_input>
class DenoiserParity : public testing::TestWithParam<std::string> {
 protected:
  auto load(at::ScalarType dtype, std::optional<BlockRange> run = {}) const {
    return load_model(fixture_, fixture_.weights(), dtype, run);
  }
  auto loader(at::ScalarType dtype) const {
    return [this, dtype](std::optional<BlockRange> run) { return load(dtype, run); };
  }
  DenoiserInput input(at::ScalarType dtype) const { return input_of(fixture_.dump(), dtype); }
  Tensor output(at::ScalarType dtype) const { return velocity_of(load(dtype), input(dtype)); }

  const c10::InferenceMode no_autograd_;
  const PartFixture fixture_{GetParam()};
};

// A fixture's weights, modified.
template <auto load_model>
class DenoiserFiles : public testing::Test {
 protected:
  explicit DenoiserFiles(const std::string& fixture) : fixture_(fixture) {}

  // What the model says of changed tensors; "accepted" if it takes them.
  std::string refusal(const std::function<void(std::map<std::string, Tensor>&)>& change) const {
    auto tensors = tensors_of(fixture_.weights());
    change(tensors);
    const auto checkpoint = checkpoint_of(tensors);
    const auto said =
        message_of([&] { load_model(fixture_, checkpoint, at::kFloat, std::nullopt); });
    return said.empty() ? "accepted" : said;
  }

  const PartFixture fixture_;
};

inline std::int64_t num_tokens(const DenoiserInput& in) {
  auto sum = in.noise.x_BLC.size(1) + in.text.x_BLC.size(1);
  for (const auto& reference : in.references) sum += reference.x_BLC.size(1);
  return sum;
}

// The places of a model that tokens passed, as it names them to Watch.
using Places = std::vector<std::string>;

struct NoCheck {
  template <class Model>
  void operator()(const Model&, const Places&) const {}
};

// When the blocks that see only the text run, which are the same in all steps.
enum class TextRefined { kInTheStep, kBeforeIt };

// Two parts, wherever the model of `shape` is cut, have the bits of the whole. load(blocks) makes
// the part that has these blocks or, of none, the whole; check(first, places) is called for every
// cut with the first part. A model of one block cannot be cut, so that its test is skipped.
template <TextRefined refined = TextRefined::kInTheStep, class Load, class Check = NoCheck>
void expect_parts_equal_whole(const Load& load, const DenoiserShape& shape, const DenoiserInput& in,
                              const Check& check = {}) {
  const auto all = shape.num_blocks();
  if (all < 2) GTEST_SKIP() << "one block cannot be cut";
  const auto whole = velocity_of(load(std::nullopt), in);
  for (std::int64_t cut = 1; cut < all; ++cut) {
    SCOPED_TRACE("cut before block " + std::to_string(cut));
    const auto first = load(BlockRange{0, cut});
    const auto second = load(BlockRange{cut, all - cut});
    Places places;
    const auto step_of = [&](const auto& part) {
      auto step = in;
      if constexpr (requires { part.num_modulations(); })
        step.modulations_BM = part.modulations({first.condition(in)}).front();
      if constexpr (refined == TextRefined::kBeforeIt)
        step.refined_BTC = second.refine(in, first.refine(in, {}));
      step.watch = [&](const std::string& where, const Tensor&) { places.push_back(where); };
      return step;
    };
    const auto state = first.advance(step_of(first), {});
    EXPECT_EQ(state.size(1), num_tokens(in) + shape.state_vectors);
    EXPECT_TRUE(at::equal(second.advance(step_of(second), state), whole));
    check(first, places);
  }
}

// Results do not depend on which pictures are modulated together, or on batching steps. Of the
// input's timesteps only the first is used.
template <class Model>
void expect_steps_modulated_at_once(const Model& model, DenoiserInput in) {
  const auto factors = at::tensor({1.f, 0.7f, 0.2f});
  for (auto* const time : {&in.timestep_B, &in.target_timestep_B})
    if (time->defined()) *time = time->narrow(0, 0, 1) * factors;
  const auto condition = model.condition(in);
  const auto made = model.modulations({condition, condition * 2, condition});
  ASSERT_EQ(made.front().sizes(), at::IntArrayRef({3, model.num_modulations()}));
  const auto of_one = model.modulations({condition}).front();
  EXPECT_TRUE(at::equal(made.front(), of_one));
  EXPECT_TRUE(at::equal(made.back(), of_one));
  for (std::int64_t i = 0; i < 3; ++i) {
    auto step = in;
    for (auto* const time : {&step.timestep_B, &step.target_timestep_B})
      if (time->defined()) *time = time->narrow(0, i, 1);
    const auto alone = model.modulations({model.condition(step)}).front();
    EXPECT_LT(largest_error(made.front().narrow(0, i, 1), alone), 1e-5);
  }
}

}  // namespace braid
