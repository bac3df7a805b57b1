// Language models as prompt encoders, against transformers' hidden states. Fixtures:
// tests/data/parity/text_encoders.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "../weights/files.h"
#include "base/error.h"
#include "causal_lm_fixture.h"
#include "comm/thread.h"
#include "models/causal_lm/model.h"
#include "models/causal_lm/names.h"
#include "weights/files/safetensors_writer.h"

namespace braid::causal_lm_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

using causal_lms::Fixture;

class CausalLms : public testing::TestWithParam<std::string> {
 protected:
  const Fixture fixture_{GetParam()};
};

TEST_P(CausalLms, EqualTheReference) {
  const auto model = fixture_.model(at::kFloat);
  for (const auto& padding : fixture_.paddings()) {
    const auto got = fixture_.encode(model, padding, Pads::kEncoded);
    EXPECT_EQ(got.size(2), model.width());
    EXPECT_LT(largest_error(got, fixture_.dumped(padding + ".states")), 1e-5) << padding;
  }
}

// They may be 1.1 times as far from float32 as the reference's own bfloat16.
TEST_P(CausalLms, AreInBfloat16AsExactAsTheReference) {
  const auto model = fixture_.model(at::kBFloat16);
  for (const auto& padding : fixture_.paddings()) {
    const auto got = fixture_.encode(model, padding, Pads::kEncoded);
    EXPECT_EQ(got.scalar_type(), at::kBFloat16);
    const auto want = fixture_.dumped(padding + ".states");
    const auto reference = relative_error(fixture_.dumped(padding + ".states.bfloat16"), want);
    EXPECT_LE(relative_error(got, want), 1.1 * reference) << padding;
  }
}

TEST_P(CausalLms, RunInFloat16) {
  const auto got = fixture_.encode(fixture_.model(at::kHalf));
  const auto want = fixture_.dumped(fixture_.paddings().front() + ".states");
  EXPECT_LT(relative_error(got, want), 0.01);
}

TEST_P(CausalLms, SkipPaddingWhereAsked) {
  const auto model = fixture_.model(at::kFloat);
  for (const auto& padding : fixture_.paddings()) {
    const auto is_text = fixture_.dumped(padding + ".mask").unsqueeze(-1);
    const auto got = fixture_.encode(model, padding, Pads::kSkipped);
    EXPECT_LT(largest_error(got, fixture_.dumped(padding + ".states") * is_text), 1e-5) << padding;
    EXPECT_EQ((got * (1 - is_text)).count_nonzero().item<std::int64_t>(), 0) << padding;
  }
}

TEST_P(CausalLms, GiveTheStatesInTheOrderAsked) {
  const auto states = [&](const HiddenStates& asked) {
    return fixture_.encode(fixture_.model({}, asked, fixture_.checkpoint()));
  };
  const auto joined = states({2, 0, 1}).chunk(3, -1);
  EXPECT_TRUE(at::equal(joined[0], states({2})));
  EXPECT_TRUE(at::equal(joined[1], states({0})));
  EXPECT_TRUE(at::equal(joined[2], states({1})));
  EXPECT_TRUE(at::equal(states({-2}), states({fixture_.config().num_layers - 1})));
  EXPECT_TRUE(at::equal(states({-1}), states({fixture_.config().num_layers})));
}

TEST_P(CausalLms, RefuseStatesThatTheyDoNotHave) {
  const auto refusal = [&](std::int64_t state) {
    return message_of<std::exception>([&] {
      fixture_.model({}, {1, state}, fixture_.checkpoint());
    });
  };
  const auto layers = std::to_string(fixture_.config().num_layers);
  EXPECT_THAT(refusal(27),
              HasSubstr("the text encoder has " + layers + " layers: there is no hidden state 27"));
  EXPECT_EQ(refusal(fixture_.config().num_layers), "");
  EXPECT_THAT(refusal(fixture_.config().num_layers + 1), HasSubstr("there is no hidden state"));
  EXPECT_THAT(refusal(-10), HasSubstr("no hidden state -10"));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CausalLms,
                         testing::Values("qwen3", "qwen3_bare", "qwen3_biased", "qwen3_last",
                                         "mistral3"),
                         [](const auto& info) { return info.param; });

// --------------------------------------------------------------------------------- checkpoints

// A fixture's checkpoint with tensors renamed or removed.
class Rewritten {
 public:
  template <class Rename>  // maps names; "" removes the tensor
  Rewritten(const Fixture& fixture, Rename rename) {
    std::map<std::string, Tensor> tensors;
    const auto stored = fixture.checkpoint();
    for (const auto& [name, tensor] : stored.tensors())
      if (const auto other = rename(name); !other.empty()) tensors[other] = tensor.view();
    write_file(folder_ / "m.safetensors", write_safetensors(tensors));
  }
  Checkpoint open() const { return Checkpoint::open(folder_.path(), "m"); }

 private:
  TemporaryFolder folder_;
};

TEST(CausalLmNames, MayStandBehindAnyPrefix) {
  const Fixture fixture("qwen3_bare");
  const auto want = fixture.encode(fixture.model(at::kFloat));
  for (const std::string prefix : {"model.", "language_model.model.", "model.language_model."}) {
    const Rewritten other(fixture, [&](const std::string& name) { return prefix + name; });
    const auto got = fixture.encode(fixture.model({}, fixture.states(), other.open()));
    EXPECT_TRUE(at::equal(got, want)) << prefix;
  }
}

TEST(CausalLmNames, OfLayersBehindTheLastStateAreNotLookedAt) {
  const Fixture fixture("qwen3");
  const Rewritten other(fixture, [](const std::string& name) -> std::string {
    return name == "model.layers.4.mlp.up_proj.weight" ? "" : name;
  });
  const auto got = fixture.encode(fixture.model({}, fixture.states(), other.open()));
  EXPECT_TRUE(at::equal(got, fixture.encode(fixture.model(at::kFloat))));
  EXPECT_THAT(message_of<std::exception>([&] { fixture.model({}, {4, -2, 3}, other.open()); }), "");
  const auto needs_it = message_of<std::exception>([&] {
    auto config = fixture.config();
    config.num_layers = 6;
    CausalLm(config, {5}, Weights(other.open(), causal_lm_names(other.open(), config), {}));
  });
  EXPECT_THAT(needs_it, HasSubstr("model.layers.4.mlp.up_proj.weight"));
}

TEST(CausalLmNames, ThatNoModelHasAreRefused) {
  const Fixture fixture("qwen3");
  const auto refusal = [&](const std::string& instead_of, const std::string& to) {
    const Rewritten other(fixture,
                          [&](const std::string& name) { return name == instead_of ? to : name; });
    return message_of<std::exception>([&] { fixture.model({}, fixture.states(), other.open()); });
  };
  EXPECT_THAT(refusal("lm_head.weight", "lm_tail.weight"), HasSubstr("'lm_tail.weight'"));
  EXPECT_EQ(refusal("lm_head.weight", "tekken_model"), "");
  for (const std::string buffer : {"model.rotary_emb.inv_freq", "rotary_emb.inv_freq",
                                   "model.layers.3.self_attn.rotary_emb.inv_freq"})
    EXPECT_EQ(refusal("lm_head.weight", buffer), "") << buffer;
  EXPECT_THAT(refusal("model.norm.weight", "model.layers.5.mlp.up_proj.weight"),
              HasSubstr("model.layers.5"));
  EXPECT_THAT(refusal("model.layers.0.self_attn.q_norm.weight", "vision_tower.x"),
              HasSubstr("model.layers.0.self_attn.q_norm.weight"));
}

// --------------------------------------------------------------------------------- what is asked

TEST(CausalLmPrompts, AreRefusedWhereTheModelCannotTakeThem) {
  const Fixture fixture("qwen3");
  auto config = fixture.config();
  config.window = 8;
  const auto stored = fixture.checkpoint();
  const CausalLm model(config, {1}, Weights(stored, causal_lm_names(stored, config), {}));
  const auto refusal = [&](const Tensor& ids, const std::vector<TextRun>& texts) {
    return message_of<std::exception>([&] { model(ids, texts); });
  };
  const auto ids = at::ones({1, 8}, at::kLong);
  EXPECT_EQ(refusal(ids, {{0, 8}}), "");
  EXPECT_THAT(refusal(at::ones({1, 9}, at::kLong), {{0, 9}}), HasSubstr("sliding window, 8"));
  EXPECT_THAT(refusal(ids * config.vocab_size, {{0, 8}}), HasSubstr("the text encoder knows 50"));
  EXPECT_THAT(refusal(ids, {{0, 9}}), HasSubstr("a text of 9 tokens from 0"));
  EXPECT_THAT(refusal(ids, {{0, 0}}), HasSubstr("a text of 0 tokens"));
  EXPECT_THAT(refusal(ids, {}), HasSubstr("0 texts in 1 prompts"));
  EXPECT_THAT(refusal(at::arange(8).unsqueeze(0), {{2, 6}}), HasSubstr("tokens before a text"));
}

// Angles depend only on position differences, so only float32 shows where positions start.
TEST(PackedPrompts, HaveTheRowsThatDifferAndTheirPositions) {
  const auto ids = at::tensor({3, 3, 5, 6, 7, 8, 9, 3}, at::kLong).view({2, 4});
  const std::vector<TextRun> texts{{2, 2}, {0, 3}};
  const PackedPrompts all(ids, texts, Pads::kEncoded);
  EXPECT_TRUE(at::equal(all.ids_1T(), at::tensor({3, 5, 6, 7, 8, 9, 3}, at::kLong).unsqueeze(0)));
  EXPECT_TRUE(at::equal(all.positions_T(), at::tensor({1, 2, 3, 0, 1, 2, 3}, at::kLong)));
  EXPECT_TRUE(at::equal(all.unpacked(all.ids_1T().unsqueeze(-1)).squeeze(-1), ids));
  const PackedPrompts text(ids, texts, Pads::kSkipped);
  EXPECT_TRUE(at::equal(text.ids_1T(), at::tensor({5, 6, 7, 8, 9}, at::kLong).unsqueeze(0)));
  EXPECT_TRUE(at::equal(text.positions_T(), at::tensor({2, 3, 0, 1, 2}, at::kLong)));
}

// --------------------------------------------------------------------------------- sharing

TEST(CausalLmSharding, ComputesWhatOneDeviceComputes) {
  const Fixture fixture("qwen3");
  const auto want = fixture.encode(fixture.model(at::kFloat));
  run_ranks({.size = 2}, [&](const Group& group) {
    const c10::InferenceMode no_autograd;
    const auto model =
        fixture.model({.tensor_parallel = group}, fixture.states(), fixture.checkpoint());
    EXPECT_LT(largest_error(fixture.encode(model), want), 1e-6);
  });
}

// Four heads of queries each.
TEST(CausalLmSharding, CopiesHeadsOfKeysToMoreRanks) {
  for (const auto& [name, ranks] : {std::pair{"mistral3", 2},
                                    {"mistral3", 4},
                                    {"qwen3", 4},
                                    {"qwen3", 3},
                                    {"qwen3_biased", 2},
                                    {"qwen3_biased", 4}}) {
    const Fixture fixture(name);
    const auto want = fixture.encode(fixture.model(at::kFloat));
    run_ranks({.size = ranks}, [&](const Group& group) {
      const c10::InferenceMode no_autograd;
      const auto model =
          fixture.model({.tensor_parallel = group}, fixture.states(), fixture.checkpoint());
      EXPECT_LT(largest_error(fixture.encode(model), want), 1e-5) << group.size();
    });
  }
}

}  // namespace braid::causal_lm_test
