// Z-Image's transformer against diffusers' results, its files against their expected contents, and
// its parts against the whole.
#include "denoiser_suite.h"
#include "models/zimage/model.h"
#include "models/zimage/names.h"
#include "models/zimage/sharding.h"

namespace braid::zimage_test {

using testing::HasSubstr;

// Adds the tensor that the fixtures leave out.
ZImage load_zimage(const PartFixture& fixture, const Checkpoint& checkpoint, at::ScalarType dtype,
                   std::optional<BlockRange> run = {}) {
  const bool is_prefixed = checkpoint.find("model.diffusion_model.x_pad_token") != nullptr;
  const auto whole = with_left_out(checkpoint, is_prefixed ? "model.diffusion_model." : "");
  return {config_of(fixture.folder(), read_zimage_config),
          Weights(whole, zimage_names(whole), {.dtype = dtype}), ops::attention, run};
}

class ZImageParity : public DenoiserParity<load_zimage, zimage_input> {
 protected:
  Tensor latents(const Tensor& tokens) const {
    const auto like = fixture_.dump()["latents"];
    return unpack(tokens, like.size(2) / 2, like.size(3) / 2);
  }
};

TEST_P(ZImageParity, EqualsTheReference) {
  fixture_.expect_equal(latents(output(at::kFloat)), "velocity");
}

TEST_P(ZImageParity, Bfloat16IsAsExactAsTheReferences) {
  fixture_.expect_as_exact_as_reference(latents(output(at::kBFloat16)), "velocity");
}

TEST_P(ZImageParity, Float16RunsAndIsClose) {
  EXPECT_LT(relative_error(latents(output(at::kHalf)), fixture_.dump()["velocity"]), 0.02);
}

TEST_P(ZImageParity, TwoPartsMakeTheSameBitsAsOne) {
  const auto shape = zimage_shape(config_of(fixture_.folder(), read_zimage_config));
  expect_parts_equal_whole(loader(at::kFloat), shape, input(at::kFloat));
}

// Also in parts, wherever they are cut: a step no longer runs what sees only the text.
TEST_P(ZImageParity, RefinesTextOnceToTheBitsOfEachStep) {
  const auto shape = zimage_shape(config_of(fixture_.folder(), read_zimage_config));
  expect_parts_equal_whole<TextRefined::kBeforeIt>(
      loader(at::kFloat), shape, input(at::kFloat), [](const ZImage&, const Places& places) {
        EXPECT_THAT(places, testing::Contains(HasSubstr("noise_refiner")));
        EXPECT_THAT(places, testing::Not(testing::Contains(HasSubstr("context_refiner"))));
        EXPECT_THAT(places, testing::Not(testing::Contains(HasSubstr("cap_embedder"))));
      });
}

TEST_P(ZImageParity, ModulatesAllStepsOfAPictureAtOnce) {
  expect_steps_modulated_at_once(load(at::kFloat), input(at::kFloat));
}

std::string tokens_of(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(std::string("zimage-").size());
}

// Captions of this many tokens, padded to 32, 32 and 64.
INSTANTIATE_TEST_SUITE_P(TextTokens, ZImageParity,
                         testing::Values("zimage-31", "zimage-32", "zimage-33"), tokens_of);

class ZImageSingleFile : public ZImageParity {};

TEST_P(ZImageSingleFile, IsTheSameTransformerUnderOtherNames) {
  const auto file = fixture_.single_file();
  const bool is_prefixed = file.find("model.diffusion_model.x_pad_token") != nullptr;
  EXPECT_EQ(is_prefixed, GetParam() == "zimage-33");
  // Not bit-identical: without AVX2, MKL's order of summation depends on memory alignment, and here
  // q, k and v are in one tensor.
  const auto model = load_zimage(fixture_, file, at::kFloat);
  EXPECT_LT(
      relative_error(latents(velocity_of(model, input(at::kFloat))), latents(output(at::kFloat))),
      1e-6);
}

INSTANTIATE_TEST_SUITE_P(TextTokens, ZImageSingleFile, testing::Values("zimage-31", "zimage-33"),
                         tokens_of);

class ZImageFiles : public DenoiserFiles<load_zimage> {
 protected:
  ZImageFiles() : DenoiserFiles("zimage-31") {}
};

TEST_F(ZImageFiles, ShouldHoldEveryTensorInItsShapeAndNoOthers) {
  const std::string name = "context_refiner.0.feed_forward.w3.weight";
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_THAT(refusal([&](auto& tensors) { tensors.erase(name); }), HasSubstr(name));
  EXPECT_THAT(refusal([&](auto& tensors) { tensors[name] = tensors[name].t().contiguous(); }),
              HasSubstr(name));
  EXPECT_THAT(refusal([&](auto& tensors) { tensors.erase("cap_pad_token"); }),
              HasSubstr("cap_pad_token"));
  EXPECT_THAT(refusal([&](auto& tensors) {
                tensors["context_refiner.0.adaLN_modulation.0.bias"] = tensors[name];
              }),
              HasSubstr("context_refiner.0.adaLN_modulation.0.bias"));
}

// Rotated as projected: attention sees them as they are where no angle rotates.
TEST_F(ZImageFiles, MayLackNormsOfQueriesAndKeys) {
  const c10::InferenceMode no_autograd;
  const auto checkpoint = with_left_out(fixture_.weights());
  auto c = config_of(fixture_.folder(), read_zimage_config);
  c.qk_norm = false;
  auto tensors = tensors_of(checkpoint);
  for (const auto& [name, tensor] : tensors_of(checkpoint))
    if (name.find("norm_q") != std::string::npos || name.find("norm_k") != std::string::npos)
      tensors.erase(name);
  const auto without = checkpoint_of(tensors);
  const Weights w(without, zimage_names(without), {.dtype = at::kFloat});
  const ZImageBlock block(w / "context_refiner" / 0, c, Modulated::kNo);
  const auto x = at::randn({1, 5, c.hidden});
  const Rope unrotated{.cos = at::ones({5, c.head_width()}), .sin = at::zeros({5, c.head_width()})};
  const std::string attention = "context_refiner.0.attention.";
  const auto normed = ops::llama_rms_norm(
      x, tensors.at("context_refiner.0.attention_norm1.weight").to(at::kFloat), c.norm_eps);
  const auto projected = [&](const char* layer) {
    const auto rows = tensors.at(attention + layer + ".weight").to(at::kFloat);
    return normed.matmul(rows.t()).unflatten(-1, {-1, c.head_width()}).transpose(1, 2);
  };
  bool attended = false;
  (void)block(x, {}, unrotated, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    EXPECT_TRUE(at::allclose(q, projected("to_q"), 1e-4, 1e-5));
    EXPECT_TRUE(at::allclose(k, projected("to_k"), 1e-4, 1e-5));
    attended = true;
    return ops::attention(q, k, v);
  });
  EXPECT_TRUE(attended);
}

TEST_F(ZImageFiles, ReferencesAreRefused) {
  const auto model = load_zimage(fixture_, fixture_.weights(), at::kFloat);
  auto in = zimage_input(fixture_.dump(), at::kFloat);
  in.references = {in.noise};
  EXPECT_THROW(velocity_of(model, in), Error);
}

// Just the shapes from which sizes are inferred.
std::map<std::string, Tensor> tensors_of_a_file(std::int64_t head_width) {
  const auto of = [](at::IntArrayRef shape) { return at::zeros(shape, at::kBFloat16); };
  return {{"x_embedder.weight", of({256, 64})},
          {"cap_embedder.0.weight", of({30})},
          {"noise_refiner.0.attention_norm1.weight", of({256})},
          {"layers.0.attention_norm1.weight", of({256})},
          {"layers.1.attention_norm1.weight", of({256})},
          {"layers.0.attention.q_norm.weight", of({head_width})}};
}

TEST(ZImageConfig, OfASingleFileFollowsFromItsShapes) {
  const auto c = infer_zimage_config(checkpoint_of(tensors_of_a_file(128)));
  EXPECT_EQ(c.hidden, 256);
  EXPECT_EQ(c.num_heads, 2);
  EXPECT_EQ(c.in_channels, 16);
  EXPECT_EQ(c.num_layers, 2);
  EXPECT_EQ(c.num_refiners, 1);
  EXPECT_EQ(c.text_width, 30);
  EXPECT_THROW(infer_zimage_config(checkpoint_of(tensors_of_a_file(64))), InputError);
  EXPECT_THROW(infer_zimage_config(checkpoint_of({})), InputError);
}

TEST(ZImageConfig, HasTheDefaultsOfTheReferenceClass) {
  const auto c = config_of_text(read_zimage_config);
  EXPECT_EQ(c.hidden, 3840);
  EXPECT_EQ(c.head_width(), 128);
  EXPECT_EQ(c.mlp_hidden(), 10240);
  EXPECT_EQ(c.token_width(), 64);
  EXPECT_EQ(c.condition_width(), 256);
  EXPECT_EQ(c.num_layers, 30);
  EXPECT_EQ(c.num_refiners, 2);
}

TEST(ZImageConfig, OfThePublishedModelHasItsNumberOfParameters) {
  EXPECT_EQ(parameters_of([](const Weights& w) { (void)ZImage({}, w); }), 6'154'908'736);
}

TEST(ZImageSharding, GivesSomeDevicesAHeadMore) {
  const auto table = zimage_sharding(ZImageConfig());
  std::int64_t next = 3840;  // of the second part, the keys
  std::vector<std::int64_t> heads, columns;
  for (int rank = 0; rank < 4; ++rank) {
    const auto qkv =
        shares_of(*find_sharding(table, "layers.3.attention.qkv"), 3 * 3840, rank, 4, "");
    const auto mlp =
        shares_of(*find_sharding(table, "layers.3.feed_forward.w2"), 10240, rank, 4, "");
    EXPECT_EQ(qkv[1].begin, next);
    next += qkv[1].count;
    heads.push_back(qkv[1].count / 128);
    columns.push_back(mlp[0].count);
  }
  EXPECT_EQ(heads, (std::vector<std::int64_t>{8, 8, 7, 7}));
  EXPECT_EQ(columns, (std::vector<std::int64_t>{2560, 2560, 2560, 2560}));
}

// A block has 180 910 336 parameters. Those of its norms and of its modulation, a matrix and a
// bias, multiply no tokens.
TEST(ZImageShape, CountsTheFlopsOfItsWeights) {
  const auto shape = zimage_shape(ZImageConfig());
  EXPECT_EQ(shape.num_blocks(), 34);
  EXPECT_EQ(shape.blocks.back().dense_flops,
            2.0 * (180'910'336 - 4 * 3840 * 257 - 4 * 3840 - 2 * 128));
}

}  // namespace braid::zimage_test
