// CLIP and T5 where fixtures do not take them: prompts with tokens behind their end, and numbers
// too large for float16.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include <cmath>

#include "dumps.h"
#include "message_of.h"
#include "models/clip/model.h"
#include "models/t5/model.h"

namespace braid::text_encoders_test {

using testing::HasSubstr;

// ------------------------------------------------------------------------------------- CLIP

Clip clip_with_end(std::int64_t eos_token) {
  return {{.vocab_size = 20,
           .max_positions = 8,
           .hidden = 8,
           .mlp_hidden = 16,
           .num_layers = 2,
           .num_heads = 2,
           .eos_token = eos_token},
          Weights::synthetic({})};
}

Tensor ids_of(std::vector<std::int64_t> ids) { return at::tensor(ids, at::kLong).unsqueeze(0); }

// Tokens that a tokenizer got later have larger ids than the end of the text.
TEST(ClipPooling, IsOfTheFirstEndOfTheText) {
  const c10::InferenceMode no_autograd;
  const auto made = clip_with_end(7)(at::cat({ids_of({1, 7, 15, 3, 7}), ids_of({19, 2, 3, 4, 7})}));
  EXPECT_TRUE(at::equal(made.pooled_BC[0], made.hidden_BLC[0][1]));
  EXPECT_TRUE(at::equal(made.pooled_BC[1], made.hidden_BLC[1][4]));
}

// As transformers does for configs with the id 2, FLUX.1's among them.
TEST(ClipPooling, IsOfTheLargestIdInOldModels) {
  const c10::InferenceMode no_autograd;
  const auto made = clip_with_end(2)(at::cat({ids_of({1, 7, 15, 3, 7}), ids_of({1, 2, 3, 4, 7})}));
  EXPECT_TRUE(at::equal(made.pooled_BC[0], made.hidden_BLC[0][2]));
  EXPECT_TRUE(at::equal(made.pooled_BC[1], made.hidden_BLC[1][4]));
}

TEST(ClipTokens, SeeWhatStandsBeforeThemAlone) {
  const c10::InferenceMode no_autograd;
  const auto clip = clip_with_end(7);
  const auto whole = clip(ids_of({1, 5, 9, 3, 7})).hidden_BLC;
  for (std::int64_t length = 1; length < 5; ++length) {
    const auto part = clip(ids_of({1, 5, 9, 3, 7}).narrow(1, 0, length)).hidden_BLC;
    EXPECT_LT(largest_error(part, whole.narrow(1, 0, length)), 1e-6) << length;
  }
}

// What a tokenizer that is not the model's would make: the user's mistake, so an InputError.
TEST(ClipTokens, AreRefusedIfTheModelDoesNotKnowThem) {
  const auto clip = clip_with_end(7);
  EXPECT_NO_THROW(clip(at::full({1, 8}, 19, at::kLong)));
  EXPECT_THAT(message_of([&] { clip(ids_of({1, 20})); }), HasSubstr("token 20, the encoder knows"));
  EXPECT_THAT(message_of([&] {
                clip(at::ones({1, 9}, at::kLong));
              }),
              HasSubstr("9 tokens, the encoder has positions for 8"));
}

// --------------------------------------------------------------------------------------- T5

constexpr std::int64_t kWidth = 8;
constexpr double kEmbedded = 60000, kAttended = 7000, kWidened = 6000, kLargestHalf = 65504,
                 kClipped = 64504;  // transformers' limit where a number is infinite

// One block that doubles its first channel on the way to `mlp`, and returns it, much enlarged, in
// the second. Attention adds a multiple of the first channel to itself.
std::map<std::string, Tensor> weights_of_large_numbers() {
  const auto only = [](std::int64_t row, double number) {
    auto matrix = at::zeros({kWidth, kWidth});
    matrix[row][0] = number;
    return matrix.to(at::kHalf);
  };
  const std::string block = "encoder.block.0.layer.", attention = block + "0.SelfAttention.",
                    mlp = block + "1.DenseReluDense.";
  auto shared = at::zeros({4, kWidth});
  shared.select(1, 0).fill_(kEmbedded);
  const auto ones = at::ones({kWidth}, at::kHalf);
  return {{"shared.weight", shared.to(at::kHalf)},
          {attention + "q.weight", only(0, 0)},
          {attention + "k.weight", only(0, 0)},
          {attention + "v.weight", only(0, 1)},
          {attention + "o.weight", only(0, kAttended)},
          {attention + "relative_attention_bias.weight", at::zeros({32, 2}, at::kHalf)},
          {block + "0.layer_norm.weight", ones},
          {mlp + "wi_0.weight", only(0, 2)},
          {mlp + "wi_1.weight", only(0, 2)},
          {mlp + "wo.weight", only(1, kWidened)},
          {block + "1.layer_norm.weight", ones},
          {"encoder.final_layer_norm.weight", ones}};
}

double gelu_tanh(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// The sum after attention is infinite, and clipped as the reference does; the MLP's last layer is
// in float32, as in the reference, and what it adds may be larger than that.
TEST(T5InFloat16, HoldsNumbersThatFloat16CannotHold) {
  const c10::InferenceMode no_autograd;
  const T5Config config{.vocab_size = 4,
                        .hidden = kWidth,
                        .mlp_hidden = kWidth,
                        .num_layers = 1,
                        .num_heads = 2,
                        .head_width = 4};
  const T5 t5(config,
              Weights(checkpoint_of(weights_of_large_numbers()), t5_names(), {.dtype = at::kHalf}));
  EXPECT_THAT(message_of([&] { t5(ids_of({0, 4})); }), HasSubstr("token 4, the encoder knows 4"));
  const auto got = t5(ids_of({0, 1, 2}));
  const double normed = std::sqrt(double(kWidth));  // of a row with one number
  ASSERT_GT(kEmbedded + kAttended * normed, kLargestHalf);
  const double second = kWidened * gelu_tanh(2 * normed) * 2 * normed;
  ASSERT_GT(second, kLargestHalf);
  const double length = std::sqrt((kClipped * kClipped + second * second) / double(kWidth));
  for (std::int64_t l = 0; l < 3; ++l) {
    EXPECT_NEAR(got[0][l][0].item<double>(), kClipped / length, 2e-3) << l;
    EXPECT_NEAR(got[0][l][1].item<double>(), second / length, 4e-3) << l;
    for (std::int64_t c = 2; c < kWidth; ++c) EXPECT_EQ(got[0][l][c].item<double>(), 0) << l;
  }
}

}  // namespace braid::text_encoders_test
