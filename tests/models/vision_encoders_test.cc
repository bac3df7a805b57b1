// SigLIP, Redux and the convolutions that look at a ControlNet's picture, against their formulas in
// float64, with weights of the shapes that published files have, made small.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include <cmath>

#include "drawn.h"
#include "dumps.h"
#include "message_of.h"
#include "models/flux/hint.h"
#include "models/flux/redux.h"
#include "models/siglip/model.h"

namespace braid::vision_encoders_test {

using testing::HasSubstr;
using Tensors = std::map<std::string, Tensor>;

// ----------------------------------------------------------------------------------- SigLIP

// 15 pixels are three patches of 4; the last three pixels of each row are not looked at.
constexpr SiglipConfig kConfig{.hidden = 12,
                               .mlp_hidden = 20,
                               .num_layers = 2,
                               .num_heads = 3,
                               .image_size = 15,
                               .patch_size = 4,
                               .eps = 1e-3};

Drawn siglip_weights() {
  Drawn drawn;
  const auto hidden = kConfig.hidden;
  drawn.add("embeddings.patch_embedding.weight", {hidden, 3, 4, 4}, 0.2);
  drawn.add("embeddings.patch_embedding.bias", {hidden});
  drawn.add("embeddings.position_embedding.weight", {9, hidden});
  for (std::int64_t i = 0; i < kConfig.num_layers; ++i) {
    const auto layer = "encoder.layers." + std::to_string(i) + ".";
    for (const std::string name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      drawn.add_layer(layer + "self_attn." + name, hidden, hidden);
    drawn.add_layer(layer + "mlp.fc1", hidden, kConfig.mlp_hidden);
    drawn.add_layer(layer + "mlp.fc2", kConfig.mlp_hidden, hidden);
    drawn.add_norm(layer + "layer_norm1", hidden);
    drawn.add_norm(layer + "layer_norm2", hidden);
  }
  drawn.add_norm("post_layernorm", hidden);
  drawn.add("head.probe", {1, 1, hidden});  // not ours
  return drawn;
}

// transformers' SiglipEncoderLayer, written out.
Tensor siglip_layer(const Drawn& w, const std::string& layer, const Tensor& x) {
  const auto normed = w.norm(layer + "layer_norm1", x, kConfig.eps);
  const auto heads = [&](const std::string& name) {
    return w.layer(layer + "self_attn." + name, normed).unflatten(-1, {3, 4}).transpose(1, 2);
  };
  const auto scores = heads("q_proj").matmul(heads("k_proj").transpose(2, 3)) / 2;  // sqrt(4)
  const auto attended = at::softmax(scores, -1).matmul(heads("v_proj"));
  const auto h = x + w.layer(layer + "self_attn.out_proj", attended.transpose(1, 2).flatten(2));
  const auto wide = w.layer(layer + "mlp.fc1", w.norm(layer + "layer_norm2", h, kConfig.eps));
  const auto active =
      0.5 * wide * (1 + at::tanh(std::sqrt(2 / M_PI) * (wide + 0.044715 * wide.pow(3))));
  return h + w.layer(layer + "mlp.fc2", active);
}

Tensor siglip_by_definition(const Drawn& w, const Tensor& pixels) {
  std::vector<Tensor> tokens;
  const auto patches = w("embeddings.patch_embedding.weight").flatten(1);
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t column = 0; column < 3; ++column)
      tokens.push_back(at::linear(pixels.narrow(2, 4 * row, 4).narrow(3, 4 * column, 4).flatten(1),
                                  patches, w("embeddings.patch_embedding.bias")));
  auto x = at::stack(tokens, 1) + w("embeddings.position_embedding.weight");
  for (std::int64_t i = 0; i < kConfig.num_layers; ++i)
    x = siglip_layer(w, "encoder.layers." + std::to_string(i) + ".", x);
  return w.norm("post_layernorm", x, kConfig.eps);
}

Tensors with_prefix(const Tensors& tensors, const std::string& prefix) {
  Tensors prefixed;
  for (const auto& [name, tensor] : tensors) prefixed[prefix + name] = tensor;
  return prefixed;
}

TEST(SiglipEncoder, EqualsItsDefinition) {
  const c10::InferenceMode no_autograd;
  const auto drawn = siglip_weights();
  const auto pixels = at::rand({2, 3, 15, 15}) * 2 - 1;
  const auto want = siglip_by_definition(drawn, pixels.to(at::kDouble));
  for (const std::string prefix : {"vision_model.", ""}) {
    const auto checkpoint = checkpoint_of(with_prefix(drawn.all(), prefix));
    const Siglip siglip(kConfig, {checkpoint, siglip_names(checkpoint), {}});
    const auto got = siglip(pixels);
    ASSERT_EQ(got.sizes(), (at::IntArrayRef{2, 9, 12}));
    EXPECT_LT(largest_error(got, want), 1e-5) << prefix;
    auto margin = pixels.clone();
    margin.narrow(3, 12, 3).fill_(9);
    margin.narrow(2, 12, 3).fill_(9);
    EXPECT_TRUE(at::equal(siglip(margin), got)) << "pixels beyond the last whole patch";
  }
}

TEST(SiglipEncoder, LooksAtEachPictureAlone) {
  const c10::InferenceMode no_autograd;
  const auto checkpoint = checkpoint_of(siglip_weights().all());
  const Siglip siglip(kConfig, {checkpoint, siglip_names(checkpoint), {}});
  const auto pixels = at::rand({3, 3, 15, 15});
  const auto together = siglip(pixels);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_LT(largest_error(siglip(pixels.narrow(0, i, 1)), together.narrow(0, i, 1)), 1e-5);
}

TEST(SiglipEncoder, NeedsAllItsTensorsAndNoOthers) {
  auto tensors = siglip_weights().all();
  const auto refusal = [](const Tensors& some) {
    const auto checkpoint = checkpoint_of(some);
    return message_of([&] { Siglip(kConfig, {checkpoint, siglip_names(checkpoint), {}}); });
  };
  EXPECT_EQ(refusal(tensors), "");
  auto more = tensors;
  more["encoder.layers.2.layer_norm1.weight"] = at::ones({12});
  EXPECT_THAT(refusal(more), HasSubstr("'encoder.layers.2.layer_norm1.weight'"));
  auto less = tensors;
  less.erase("encoder.layers.1.self_attn.k_proj.bias");
  EXPECT_THAT(refusal(less), HasSubstr("no tensor 'encoder.layers.1.self_attn.k_proj.bias'"));
  auto other = tensors;
  other["embeddings.position_embedding.weight"] = at::ones({16, 12});
  EXPECT_THAT(refusal(other), HasSubstr("should have the shape [9, 12], it has [16, 12]"));
}

// ------------------------------------------------------------------------------------ Redux

TEST(ReduxEmbedder, EqualsItsDefinition) {
  const c10::InferenceMode no_autograd;
  Drawn drawn;
  drawn.add_layer("redux_up", 6, 15);
  drawn.add_layer("redux_down", 15, 5);
  const Redux redux({.vision_width = 6, .text_width = 5}, {checkpoint_of(drawn.all()), {}, {}});
  const auto x = at::randn({2, 7, 6});
  const auto wide = drawn.layer("redux_up", x.to(at::kDouble));
  const auto want = drawn.layer("redux_down", wide / (1 + at::exp(-wide)));
  EXPECT_LT(largest_error(redux(x), want), 1e-5);
}

// ------------------------------------------------------------------- the picture of a ControlNet

// diffusers' ControlNetConditioningEmbedding: a convolution, then three times one that keeps the
// size and one that halves it, SiLU after each, and a last one without; tokens of 2 x 2 pixels.
TEST(ControlPictures, AreSeenAsTheirDefinitionSays) {
  const c10::InferenceMode no_autograd;
  Drawn drawn;
  const auto add = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    drawn.add(name + ".weight", {out, in, 3, 3}, 1 / std::sqrt(9.0 * double(in)));
    drawn.add(name + ".bias", {out});
  };
  add("conv_in", 3, 16);
  for (int i = 0; i < 6; ++i) add("blocks." + std::to_string(i), 16, 16);
  add("conv_out", 16, 5);
  const Weights weights(checkpoint_of(drawn.all()), {}, {});
  const PictureHint hint(weights, 5);
  weights.finish();
  const auto picture = at::randn({1, 3, 48, 80});
  const auto silu = [](const Tensor& x) { return x / (1 + at::exp(-x)); };
  auto x = silu(drawn.convolution("conv_in", picture.to(at::kDouble), 1, 1));
  for (int i = 0; i < 6; ++i)
    x = silu(drawn.convolution("blocks." + std::to_string(i), x, 1 + i % 2, 1));
  x = drawn.convolution("conv_out", x, 1, 1);
  ASSERT_EQ(x.sizes(), (at::IntArrayRef{1, 5, 6, 10}));
  const auto got = hint(picture);
  ASSERT_EQ(got.sizes(), (at::IntArrayRef{1, 15, 20}));
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t column = 0; column < 5; ++column)
      EXPECT_LT(largest_error(got[0][5 * row + column],
                              x[0].narrow(1, 2 * row, 2).narrow(2, 2 * column, 2).flatten()),
                1e-4)
          << row << " " << column;
}

}  // namespace braid::vision_encoders_test
