// Qwen-Image's transformer against diffusers' results, its files against their expected contents,
// and its parts against the whole.
#include "denoiser_suite.h"
#include "models/qwen25_vl/config.h"
#include "models/qwen_image/model.h"
#include "models/qwen_image/names.h"

namespace braid::qwen_image_test {

using testing::HasSubstr;

QwenImage load_qwen_image(const PartFixture& fixture, const Checkpoint& checkpoint,
                          at::ScalarType dtype, std::optional<BlockRange> run = {}) {
  return {config_of(fixture.folder(), read_qwen_image_config),
          Weights(checkpoint, qwen_image_names(checkpoint), {.dtype = dtype}), ops::attention, run};
}

class QwenImageParity : public DenoiserParity<load_qwen_image> {};

TEST_P(QwenImageParity, EqualsTheReference) {
  fixture_.expect_equal(output(at::kFloat), "velocity");
}

TEST_P(QwenImageParity, Bfloat16IsAsExactAsTheReferences) {
  fixture_.expect_as_exact_as_reference(output(at::kBFloat16), "velocity");
}

TEST_P(QwenImageParity, Float16RunsAndIsClose) {
  EXPECT_LT(relative_error(output(at::kHalf), fixture_.dump()["velocity"]), 0.02);
}

TEST_P(QwenImageParity, TwoPartsMakeTheSameBitsAsOne) {
  const auto shape = qwen_image_shape(config_of(fixture_.folder(), read_qwen_image_config));
  expect_parts_equal_whole(loader(at::kFloat), shape, input(at::kFloat));
}

TEST_P(QwenImageParity, ModulatesAllStepsOfAPictureAtOnce) {
  expect_steps_modulated_at_once(load(at::kFloat), input(at::kFloat));
}

// A ControlNet's residuals are added to the noise's tokens alone, in runs of equal length.
TEST_P(QwenImageParity, AddsResidualsBehindItsBlocks) {
  const auto model = load(at::kFloat);
  auto in = input(at::kFloat);
  const auto plain = velocity_of(model, in);
  const auto zero =
      at::zeros({in.noise.x_BLC.size(0), in.noise.x_BLC.size(1), model.config().hidden()});
  in.residuals.doubles = {zero};
  EXPECT_TRUE(at::equal(velocity_of(model, in), plain));
  in.residuals.doubles = {zero, at::randn(zero.sizes())};  // the norm behind it drops constants
  EXPECT_GT(largest_error(velocity_of(model, in), plain), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, QwenImageParity,
                         testing::Values("qwen-image", "qwen-image-references", "qwen-image-zero"),
                         without_dashes);

class QwenImageSingleFile : public QwenImageParity {};

TEST_P(QwenImageSingleFile, IsTheSameTransformer) {
  const auto file = fixture_.single_file();
  const bool is_prefixed = file.find("model.diffusion_model.img_in.weight") != nullptr;
  EXPECT_EQ(is_prefixed, GetParam() == "qwen-image-references");
  const auto model = load_qwen_image(fixture_, file, at::kFloat);
  EXPECT_TRUE(at::equal(velocity_of(model, input(at::kFloat)), output(at::kFloat)));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, QwenImageSingleFile,
                         testing::Values("qwen-image", "qwen-image-references"), bare_or_prefixed);

class QwenImageFiles : public DenoiserFiles<load_qwen_image> {
 protected:
  QwenImageFiles() : DenoiserFiles("qwen-image") {}
};

TEST_F(QwenImageFiles, ShouldHoldEveryTensorInItsShapeAndNoOthers) {
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  for (const std::string name :
       {"txt_norm.weight", "transformer_blocks.1.img_mod.1.bias", "norm_out.linear.weight",
        "transformer_blocks.1.txt_mlp.net.0.proj.weight",
        "transformer_blocks.0.attn.norm_added_k.weight"})
    EXPECT_THAT(refusal([&](auto& tensors) { tensors.erase(name); }), HasSubstr(name)) << name;
  const std::string wide = "transformer_blocks.1.img_mlp.net.2.weight";
  EXPECT_THAT(refusal([&](auto& tensors) { tensors[wide] = tensors[wide].t().contiguous(); }),
              HasSubstr("transformer_blocks.1.img_mlp"));
  EXPECT_THAT(refusal([&](auto& tensors) {
                tensors["transformer_blocks.0.attn.to_v.scale"] = at::zeros({32});
              }),
              HasSubstr("transformer_blocks.0.attn.to_v.scale"));
}

// ComfyUI's mark of Edit-2511, which its weights alone do not tell from Edit-2509.
TEST_F(QwenImageFiles, MayMarkThatReferencesHaveTimestepZero) {
  EXPECT_EQ(refusal([](auto& tensors) { tensors[kZeroReferenceTime] = at::zeros({0}); }),
            "accepted");
  auto tensors = tensors_of(fixture_.weights());
  QwenImageConfig config;
  adopt_blocks(config, checkpoint_of(tensors));
  EXPECT_EQ(config.num_layers, 2);
  EXPECT_EQ(config.reference_time, ReferenceTime::kOfStep);
  tensors[kZeroReferenceTime] = at::zeros({1});
  adopt_blocks(config, checkpoint_of(tensors));
  EXPECT_EQ(config.reference_time, ReferenceTime::kZero);
  QwenImageConfig layered{.draws = QwenImageDraws::kLayers};
  const auto mark_alone = checkpoint_of({{kZeroReferenceTime, at::zeros({1})}});
  EXPECT_THAT(message_of([&] { adopt_blocks(layered, mark_alone); }),
              HasSubstr("Layered should have neither '__index_timestep_zero__' nor 'zero_cond_t'"));
}

TEST_F(QwenImageFiles, AConfigFollowsFromTheShapesOfASingleFile) {
  auto tensors = tensors_of(fixture_.single_file());
  EXPECT_THAT(message_of([&] { infer_qwen_image_config(checkpoint_of(tensors)); }),
              HasSubstr("should sum to the width of a head, 8, it sums to 128"));
  for (const std::string block : {"0", "1"})
    tensors["transformer_blocks." + block + ".attn.norm_q.weight"] = at::zeros({128});
  tensors["img_in.weight"] = at::zeros({256, 16});
  const auto c = infer_qwen_image_config(checkpoint_of(tensors));
  EXPECT_EQ(c.num_layers, 2);
  EXPECT_EQ(c.hidden(), 256);
  EXPECT_EQ(c.num_heads, 2);
  EXPECT_EQ(c.in_channels, 16);
  EXPECT_EQ(c.out_channels, 16);
  EXPECT_EQ(c.text_width, 24);
  EXPECT_THROW(infer_qwen_image_config(checkpoint_of({})), InputError);
}

TEST(QwenImageConfigs, HaveTheDefaultsOfTheReferenceClass) {
  const auto c = config_of_text(read_qwen_image_config);
  EXPECT_EQ(c.hidden(), 3072);
  EXPECT_EQ(c.head_width, 128);
  EXPECT_EQ(c.num_layers, 60);
  EXPECT_EQ(c.text_width, 3584);
  EXPECT_EQ(c.in_channels, 64);
  EXPECT_EQ(c.reference_time, ReferenceTime::kOfStep);
}

TEST(QwenImageConfigs, RefuseWhatIsNotImplemented) {
  const auto refusal = [](const char* text) {
    return message_of([&] { config_of_text(read_qwen_image_config, text); });
  };
  EXPECT_THAT(refusal(R"({"guidance_embeds": true})"),
              HasSubstr("'guidance_embeds' should be false"));
  EXPECT_THAT(refusal(R"({"use_layer3d_rope": true})"),
              HasSubstr("'use_additional_t_cond' and 'use_layer3d_rope' should be the same"));
  EXPECT_THAT(refusal(R"({"patch_size": 1})"), HasSubstr("'patch_size'"));
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [16, 56, 32]})"),
              HasSubstr("'axes_dims_rope' should sum to the width of a head, 128"));
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [15, 57, 56]})"), HasSubstr("even numbers"));
  EXPECT_THAT(refusal(R"({"_class_name": "QwenImage21Transformer2DModel"})"),
              HasSubstr("should describe a QwenImageTransformer2DModel"));
}

// Counted with diffusers' class on the meta device.
TEST(QwenImageConfigs, OfThePublishedModelHaveItsNumberOfParameters) {
  EXPECT_EQ(parameters_of([](const Weights& w) { (void)QwenImage({}, w); }), 20'430'401'088);
}

// A block's dense layers have, for a token of either side, four matrices of attention and two of
// the MLP; its modulations are computed before the loop.
TEST(QwenImageShape, CountsTheFlopsOfItsWeights) {
  const auto shape = qwen_image_shape({});
  EXPECT_EQ(shape.num_blocks(), 60);
  EXPECT_EQ(shape.blocks.size(), 1u);
  EXPECT_EQ(shape.blocks.front().dense_flops, 2.0 * 12 * 3072 * 3072);
  EXPECT_EQ(shape.in_width, 64);
  EXPECT_EQ(shape.pooled_width, 0);
}

}  // namespace braid::qwen_image_test
