// Qwen-Image-2.1's transformer against diffusers' results, its files against their expected
// contents, and its parts against the whole.
#include "denoiser_suite.h"
#include "models/qwen21/model.h"
#include "models/qwen21/names.h"
#include "models/qwen21/sharding.h"
#include "parallel/reference_kv_cache.h"

namespace braid::qwen21_test {

using testing::HasSubstr;

Qwen21 load_qwen21(const PartFixture& fixture, const Checkpoint& checkpoint, at::ScalarType dtype,
                   std::optional<BlockRange> run = {}) {
  return {config_of(fixture.folder(), read_qwen21_config),
          Weights(checkpoint, qwen21_names(checkpoint), {.dtype = dtype}), attention_here, run};
}

// Those that come before the noise, and the noise alone.
Tokens none_of(Tokens tokens) {
  tokens.x_BLC = tokens.x_BLC.narrow(1, 0, 0);
  tokens.ids_LA = tokens.ids_LA.narrow(0, 0, 0);
  if (tokens.span_L2.defined()) tokens.span_L2 = tokens.span_L2.narrow(0, 0, 0);
  return tokens;
}

class Qwen21Parity : public DenoiserParity<load_qwen21> {};

TEST_P(Qwen21Parity, EqualsTheReference) { fixture_.expect_equal(output(at::kFloat), "velocity"); }

TEST_P(Qwen21Parity, Bfloat16IsAsExactAsTheReferences) {
  fixture_.expect_as_exact_as_reference(output(at::kBFloat16), "velocity");
}

TEST_P(Qwen21Parity, Float16RunsAndIsClose) {
  EXPECT_LT(relative_error(output(at::kHalf), fixture_.dump()["velocity"]), 0.02);
}

TEST_P(Qwen21Parity, TwoPartsMakeTheSameBitsAsOne) {
  const auto shape = qwen21_shape(config_of(fixture_.folder(), read_qwen21_config));
  expect_parts_equal_whole(loader(at::kFloat), shape, input(at::kFloat));
}

// Every token's keys and values depend on nothing behind it, so that later steps need only the
// image.
TEST_P(Qwen21Parity, KeepsKeysAndValuesOfThePrefix) {
  const auto in = input(at::kFloat);
  ReferenceKvCache cache;
  const Qwen21 model(
      config_of(fixture_.folder(), read_qwen21_config),
      Weights(fixture_.weights(), qwen21_names(fixture_.weights()), {.dtype = at::kFloat}),
      cache.around(attention_here));
  const auto part = cache.counted(
      [&](const DenoiserInput& input, const Tensor& state) { return model.advance(input, state); });
  auto step = in;
  step.modulations_BM = model.modulations({model.condition(in)}).front();
  const auto whole = part(step, {});
  auto prefix = step;
  prefix.noise = none_of(step.noise);
  cache.set_use(ReferenceKvCache::Use::kKeep, ReferenceKvCache::Of::kPrefix);
  (void)part(prefix, {});
  cache.set_use(ReferenceKvCache::Use::kAttend, ReferenceKvCache::Of::kPrefix);
  auto image = step;
  image.text = none_of(step.text);
  image.references.clear();
  EXPECT_LT(largest_error(part(image, {}), whole), 1e-6);
}

TEST_P(Qwen21Parity, ModulatesAllStepsOfAPictureAtOnce) {
  expect_steps_modulated_at_once(load(at::kFloat), input(at::kFloat));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Qwen21Parity,
                         testing::Values("qwen21", "qwen21-references", "qwen21-eps",
                                         "qwen21-timed"),
                         without_dashes);

class Qwen21SingleFile : public Qwen21Parity {};

TEST_P(Qwen21SingleFile, IsTheSameTransformerUnderOtherNames) {
  const auto file = fixture_.single_file();
  const bool is_prefixed = file.find("model.diffusion_model.img_in.weight") != nullptr;
  EXPECT_EQ(is_prefixed, GetParam() == "qwen21-references");
  const auto gate_up = "transformer_blocks.0.img_mlp.gate_up.weight";
  EXPECT_TRUE(file.find((is_prefixed ? "model.diffusion_model." : "") + std::string(gate_up)));
  const auto model = load_qwen21(fixture_, file, at::kFloat);
  EXPECT_TRUE(at::equal(velocity_of(model, input(at::kFloat)), output(at::kFloat)));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Qwen21SingleFile, testing::Values("qwen21", "qwen21-references"),
                         bare_or_prefixed);

class Qwen21Files : public DenoiserFiles<load_qwen21> {
 protected:
  Qwen21Files() : DenoiserFiles("qwen21") {}
};

TEST_F(Qwen21Files, ShouldHoldEveryTensorInItsShapeAndNoOthers) {
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  for (const std::string name :
       {"txt_in.text_norm.weight", "modulation.1.weight", "norm_out.linear.weight",
        "transformer_blocks.1.img_mlp.proj.weight", "transformer_blocks.2.attn.norm_k.weight"})
    EXPECT_THAT(refusal([&](auto& tensors) { tensors.erase(name); }), HasSubstr(name)) << name;
  const std::string wide = "transformer_blocks.1.img_mlp.out.weight";
  EXPECT_THAT(refusal([&](auto& tensors) { tensors[wide] = tensors[wide].t().contiguous(); }),
              HasSubstr("transformer_blocks.1.img_mlp"));
  EXPECT_THAT(refusal([&](auto& tensors) {
                tensors["transformer_blocks.0.attn.to_q.bias"] = at::zeros({32});
              }),
              HasSubstr("transformer_blocks.0.attn.to_q.bias"));
}

TEST_F(Qwen21Files, AConfigFollowsFromTheShapesOfASingleFile) {
  auto tensors = tensors_of(fixture_.single_file());
  EXPECT_THAT(message_of([&] { infer_qwen21_config(checkpoint_of(tensors)); }),
              HasSubstr("should sum to the width of a head, 8, it sums to 128"));
  for (const std::string block : {"0", "1", "2"})
    tensors["transformer_blocks." + block + ".attn.norm_q.weight"] = at::zeros({128});
  tensors["img_in.weight"] = at::zeros({256, 8});
  const auto c = infer_qwen21_config(checkpoint_of(tensors));
  EXPECT_EQ(c.num_layers, 3);
  EXPECT_EQ(c.hidden, 256);
  EXPECT_EQ(c.num_heads, 2);
  EXPECT_EQ(c.token_width, 8);
  EXPECT_EQ(c.text_width, 24);
  EXPECT_EQ(c.mlp_hidden, 96);
  EXPECT_THROW(infer_qwen21_config(checkpoint_of({})), InputError);
}

TEST(Qwen21Config, HasTheDefaultsOfTheReferenceClass) {
  const auto c = config_of_text(read_qwen21_config);
  EXPECT_EQ(c.hidden, 4096);
  EXPECT_EQ(c.head_width(), 128);
  EXPECT_EQ(c.mlp_hidden, 12288);
  EXPECT_EQ(c.num_layers, 32);
  EXPECT_EQ(c.text_width, 4096);
}

TEST(Qwen21Config, RefusesWhatItDoesNotImplement) {
  const auto refusal = [](const char* text) {
    return message_of([&] { config_of_text(read_qwen21_config, text); });
  };
  EXPECT_EQ(refusal(R"({"causal_condition": false, "out_channels": null})"), "");
  EXPECT_THAT(refusal(R"({"causal_condition": 0})"), HasSubstr("'causal_condition'"));
  EXPECT_THAT(refusal(R"({"patch_size": 2})"), HasSubstr("'patch_size'"));
  EXPECT_THAT(refusal(R"({"out_channels": 32})"), HasSubstr("'out_channels'"));
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [16, 56, 32]})"),
              HasSubstr("'axes_dims_rope' should sum to the width of a head, 128"));
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [15, 57, 56]})"), HasSubstr("even numbers"));
  EXPECT_THAT(refusal(R"({"_class_name": "QwenImageTransformer2DModel"})"),
              HasSubstr("should describe a QwenImage21Transformer2DModel"));
}

// Counted with diffusers' class on the meta device.
TEST(Qwen21Config, OfThePublishedModelHasItsNumberOfParameters) {
  EXPECT_EQ(parameters_of([](const Weights& w) { (void)Qwen21({}, w); }), 7'115'124'736);
}

// A block's dense layers have four matrices of attention and three of the MLP.
TEST(Qwen21Shape, CountsTheFlopsOfItsWeights) {
  const auto shape = qwen21_shape({});
  EXPECT_EQ(shape.num_blocks(), 32);
  EXPECT_EQ(shape.blocks.front().dense_flops, 2.0 * 13 * 4096 * 4096);
  EXPECT_EQ(shape.text, TextTokens::kPrefix);
}

}  // namespace braid::qwen21_test
