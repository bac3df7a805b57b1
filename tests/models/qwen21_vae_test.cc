// Qwen-Image-2.1's autoencoder against diffusers' results.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include "dumps.h"
#include "message_of.h"
#include "models/vae/model.h"
#include "wan_names.h"

namespace braid::qwen21_vae_test {

using testing::HasSubstr;

// Random norms amplify float32's rounding: without AVX2 one of the seeds is 1.1e-5 off.
constexpr double kDecoded = 2e-5;

class Qwen21Vae : public testing::TestWithParam<std::string> {
 protected:
  Vae load(at::ScalarType dtype, Vae::Parts parts = Vae::Parts::kBoth) const {
    const auto checkpoint = fixture_.weights();
    return {config_of(fixture_.folder(), read_rgba_vae_config),
            Weights(checkpoint, vae_names(checkpoint), {.dtype = dtype}), parts};
  }
  Tensor given(const char* name, at::ScalarType dtype) const {
    return fixture_.dump()[name].to(dtype);
  }
  Tensor moments(const Vae& vae, at::ScalarType dtype) const {
    const auto made = vae.encode(given("pixels", dtype), Tiles::kNever);
    return at::cat({made.mean, made.logvar}, 1);
  }

  const c10::InferenceMode no_autograd_;
  const PartFixture fixture_{GetParam()};
};

// The reference clamps its pictures, here that is left to the conversion to bytes.
TEST_P(Qwen21Vae, EqualsTheReference) {
  const auto vae = load(at::kFloat);
  const auto decoded = vae.decode(given("latents", at::kFloat), Tiles::kNever);
  EXPECT_EQ(decoded.size(1), 4);
  fixture_.expect_equal(decoded.clamp(-1, 1), "decoded", kDecoded);
  fixture_.expect_equal(moments(vae, at::kFloat), "moments");
  const auto tiled = vae.decode(given("wide_latents", at::kFloat), Tiles::kWhereLarger);
  fixture_.expect_equal(tiled.clamp(-1, 1).slice(3, 0, {}, 3), "decoded_tiled", kDecoded);
}

TEST_P(Qwen21Vae, ScalesLatentsByItsStatistics) {
  const auto vae = load(at::kFloat);
  fixture_.expect_equal(vae.to_decoder(given("latents", at::kFloat)), "scaled");
  fixture_.expect_equal(vae.from_encoder(given("latents", at::kFloat)), "normed");
}

TEST_P(Qwen21Vae, Bfloat16IsAsExactAsTheReferences) {
  const auto dtype = at::kBFloat16;
  const auto vae = load(dtype);
  fixture_.expect_as_exact_as_reference(
      vae.decode(given("latents", dtype), Tiles::kNever).clamp(-1, 1), "decoded");
  fixture_.expect_as_exact_as_reference(moments(vae, dtype), "moments");
  fixture_.expect_as_exact_as_reference(vae.to_decoder(given("latents", dtype)), "scaled");
  fixture_.expect_as_exact_as_reference(vae.from_encoder(given("latents", dtype)), "normed");
}

TEST_P(Qwen21Vae, DecodesWithoutItsEncoder) {
  const auto vae = load(at::kFloat, Vae::Parts::kDecoder);
  fixture_.expect_equal(vae.decode(given("latents", at::kFloat), Tiles::kNever).clamp(-1, 1),
                        "decoded");
  EXPECT_THROW(vae.encode(given("pixels", at::kFloat), Tiles::kNever), Error);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Qwen21Vae,
                         testing::Values("qwen21-vae", "qwen21-vae-odd", "qwen21-vae-317",
                                         "qwen21-vae-318"),
                         [](const auto& info) {
                           if (info.index == 1) return std::string("OtherWidths");
                           return info.index == 0 ? "Plain" : "Seed" + info.param.substr(11);
                         });

// The same tensors as Wan's authors call them, with one slice of time.
std::string in_wans_words(std::string name) {
  const bool is_up = name.find("up_blocks") != name.npos;
  const std::string list = is_up ? "upsamples" : "downsamples";
  rename(name, {{is_up ? "up_blocks" : "down_blocks", list}});
  if (name.find(list) != name.npos) {
    const auto* const sampler = is_up ? "upsampler" : "downsampler";
    rename(name, {{"resnets", list}, {sampler, list + (is_up ? ".2" : ".1")}});  // behind 2, or 1
  }
  rename(name, kWansBlock);
  rename(name, kWansEnds);
  return name;
}

TEST(Qwen21VaeFiles, MayHaveWansNames) {
  const PartFixture fixture("qwen21-vae");
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] : tensors_of(fixture.weights())) {
    const bool is_conv = tensor.dim() == 4 && name.ends_with("weight") &&
                         name.find("resample") == name.npos && name.find("to_qkv") == name.npos &&
                         name.find("proj") == name.npos;
    tensors[in_wans_words(name)] = is_conv ? tensor.unsqueeze(2) : tensor;
  }
  ASSERT_TRUE(tensors.contains("decoder.upsamples.0.upsamples.2.resample.1.weight"));
  const auto file = checkpoint_of(tensors);
  const c10::InferenceMode no_autograd;
  const Vae vae(config_of(fixture.folder(), read_rgba_vae_config),
                Weights(file, vae_names(file), {.dtype = at::kFloat}));
  fixture.expect_equal(vae.decode(fixture.dump()["latents"], Tiles::kNever).clamp(-1, 1),
                       "decoded");
}

VaeConfig config_from(const std::string& fields) {
  return config_of_text(read_rgba_vae_config,
                        R"({"_class_name":"AutoencoderKLQwenImage21")" + fields + "}");
}

// The layers that no picture meets are not counted: 6 753 216 in six convolutions over time.
TEST(Qwen21VaeConfig, HasTheNumberOfParametersOfThePublishedModel) {
  const auto config = config_from("");
  EXPECT_EQ(parameters_of([&](const Weights& w) { (void)Vae(config, w); }),
            337'740'404 - 6'753'216);
  EXPECT_EQ(config.downscale(), 16);
  EXPECT_EQ(config.latents_mean.size(), 64u);
}

TEST(Qwen21VaeConfig, RefusesWhatItDoesNotImplement) {
  const auto refusal = [](const std::string& fields) {
    return message_of([&] { config_from(", " + fields); });
  };
  EXPECT_THAT(refusal(R"("is_residual": false)"), HasSubstr("'is_residual' should be true"));
  EXPECT_THAT(refusal(R"("patch_size": 2)"), HasSubstr("'patch_size'"));
  EXPECT_THAT(refusal(R"("attn_scales": [0.5])"), HasSubstr("'attn_scales'"));
  EXPECT_THAT(refusal(R"("temperal_downsample": [true])"), HasSubstr("'temperal_downsample'"));
  EXPECT_THAT(refusal(R"("temperal_downsample": 3)"), HasSubstr("'temperal_downsample'"));
  EXPECT_THAT(refusal(R"("dim_mult": [1, 3, 4, 8, 8])"), HasSubstr("'dim_mult'"));
  EXPECT_THAT(refusal(R"("out_channels": 3)"), HasSubstr("'out_channels'"));
  EXPECT_EQ(refusal(R"("decoder_base_dim": null)"), "");
}

TEST(Qwen21VaeConfig, IsNoneOfPicturesWithoutAlpha) {
  EXPECT_THROW(config_of_text(read_vae_config, R"({"_class_name":"AutoencoderKLQwenImage21"})"),
               InputError);
}

}  // namespace braid::qwen21_vae_test
