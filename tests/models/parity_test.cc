// Every part of every fixture, alone, against diffusers' and transformers' results. The first test
// to fail names the wrong part. Fixtures: tests/data/parity/README.md.
#include <algorithm>
#include <map>
#include <ranges>

#include "denoiser_suite.h"
#include "models/clip/model.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "models/t5/model.h"
#include "models/vae/model.h"

namespace braid::parity_test {

namespace fs = std::filesystem;

class Parts : public testing::TestWithParam<std::string> {
 protected:
  Parts()
      : folder_(kParity / GetParam()),
        manifest_(read_json(folder_ / "manifest.json")),
        model_(folder_ / manifest_["model"].get<std::string>()),
        dump_(folder_ / "components.safetensors") {}

  Tensor dumped(const std::string& name) const { return dump_[name]; }
  bool has(const std::string& name) const { return dump_.has(name); }

  Clip clip(at::ScalarType dtype) const {
    auto checkpoint = Checkpoint::open(model_ / "text_encoder", "model");
    auto names = clip_names(checkpoint);
    return {config_of(model_ / "text_encoder", read_clip_config),
            Weights(std::move(checkpoint), names, {.dtype = dtype})};
  }
  T5 t5(at::ScalarType dtype) const {
    return {config_of(model_ / "text_encoder_2", read_t5_config),
            Weights(Checkpoint::open(model_ / "text_encoder_2", "model"), t5_names(),
                    {.dtype = dtype})};
  }
  Flux flux(at::ScalarType dtype) const {
    return flux_of(Checkpoint::open(model_ / "transformer", "diffusion_pytorch_model"), dtype);
  }
  Flux flux_of(const Checkpoint& checkpoint, at::ScalarType dtype) const {
    return {config_of(model_ / "transformer", read_flux_config),
            Weights(checkpoint, flux_names(checkpoint), {.dtype = dtype})};
  }
  Vae vae(at::ScalarType dtype) const {
    auto checkpoint = Checkpoint::open(model_ / "vae", "diffusion_pytorch_model");
    auto names = vae_names(checkpoint);
    return {config_of(model_ / "vae", read_vae_config),
            Weights(std::move(checkpoint), names, {.dtype = dtype})};
  }
  DenoiserInput input(at::ScalarType dtype) const {
    DenoiserInput in{
        .noise = {dumped("transformer.hidden_states").to(dtype), dumped("transformer.img_ids")},
        .text = {dumped("transformer.encoder_hidden_states").to(dtype),
                 dumped("transformer.txt_ids")},
        .pooled_BC = dumped("transformer.pooled_projections").to(dtype),
        .timestep_B = dumped("transformer.timestep").to(dtype)};
    if (has("transformer.guidance")) in.guidance_B = dumped("transformer.guidance");
    return in;
  }
  Tensor velocity(const Flux& model, at::ScalarType dtype) const {
    return velocity_of(model, input(dtype));
  }
  // The fixture is from one processor; on others the reference itself differs by this much.
  void expect_equal(const Tensor& got, const std::string& name) const {
    const double spread = manifest_["float32_spread"][name];
    EXPECT_LT(largest_error(got, dumped(name)), 1e-5 + spread) << name;
  }
  // A result may be 1.1 times as far from float32 as the reference's own bfloat16 is at its worst.
  void expect_as_exact_as_reference(const Tensor& got, const std::string& name) const {
    EXPECT_EQ(got.scalar_type(), at::kBFloat16) << name;
    const std::map<std::string, double> errors = manifest_["bfloat16_errors"][name];
    const auto largest = std::ranges::max(errors | std::views::values);
    EXPECT_LE(relative_error(got, dumped(name)), 1.1 * largest) << name;
  }

  const c10::InferenceMode no_autograd_;
  fs::path folder_;
  Json manifest_;
  fs::path model_;
  Dump dump_;
};

TEST_P(Parts, ClipEqualsTheReference) {
  const auto out = clip(at::kFloat)(dumped("clip.input_ids"));
  expect_equal(out.hidden_BLC, "clip.last_hidden_state");
  expect_equal(out.pooled_BC, "clip.pooled");
}

TEST_P(Parts, T5EqualsTheReference) {
  expect_equal(t5(at::kFloat)(dumped("t5.input_ids")), "t5.last_hidden_state");
}

TEST_P(Parts, TheTransformerEqualsTheReference) {
  expect_equal(velocity(flux(at::kFloat), at::kFloat), "transformer.velocity");
}

TEST_P(Parts, TheTransformerModulatesAllStepsOfAPictureAtOnce) {
  auto in = input(at::kFloat);
  for (auto* const x : {&in.noise.x_BLC, &in.pooled_BC, &in.guidance_B})
    if (x->defined()) *x = x->narrow(0, 0, 1);
  expect_steps_modulated_at_once(flux(at::kFloat), in);
}

TEST_P(Parts, TheAutoencoderEqualsTheReference) {
  const auto model = vae(at::kFloat);
  expect_equal(model.decode(dumped("vae.latents"), Tiles::kNever), "vae.decoded");
  const auto moments = model.encode(dumped("vae.pixels"), Tiles::kNever);
  expect_equal(at::cat({moments.mean, moments.logvar}, 1), "vae.moments");
}

TEST_P(Parts, TilesAreBlendedAsTheReferenceBlendsThem) {
  const auto model = vae(at::kFloat);
  expect_equal(model.decode(dumped("vae.latents"), Tiles::kWhereLarger), "vae.decoded_tiled");
  const auto moments = model.encode(dumped("vae.pixels"), Tiles::kWhereLarger);
  expect_equal(at::cat({moments.mean, moments.logvar}, 1), "vae.moments_tiled");
}

TEST_P(Parts, Bfloat16IsAsExactAsTheReferences) {
  const auto text = clip(at::kBFloat16)(dumped("clip.input_ids"));
  expect_as_exact_as_reference(text.hidden_BLC, "clip.last_hidden_state");
  expect_as_exact_as_reference(text.pooled_BC, "clip.pooled");
  expect_as_exact_as_reference(t5(at::kBFloat16)(dumped("t5.input_ids")), "t5.last_hidden_state");
  expect_as_exact_as_reference(velocity(flux(at::kBFloat16), at::kBFloat16),
                               "transformer.velocity");
  const auto model = vae(at::kBFloat16);
  expect_as_exact_as_reference(model.decode(dumped("vae.latents").to(at::kBFloat16), Tiles::kNever),
                               "vae.decoded");
  const auto moments = model.encode(dumped("vae.pixels").to(at::kBFloat16), Tiles::kNever);
  expect_as_exact_as_reference(at::cat({moments.mean, moments.logvar}, 1), "vae.moments");
}

// Only promised to work: float16 is for devices without anything better.
TEST_P(Parts, Float16RunsAndIsClose) {
  const auto expect_close = [&](const Tensor& got, const std::string& name) {
    EXPECT_EQ(got.scalar_type(), at::kHalf) << name;
    EXPECT_LT(relative_error(got, dumped(name)), 0.02) << name;
  };
  expect_close(clip(at::kHalf)(dumped("clip.input_ids")).hidden_BLC, "clip.last_hidden_state");
  expect_close(t5(at::kHalf)(dumped("t5.input_ids")), "t5.last_hidden_state");
  expect_close(velocity(flux(at::kHalf), at::kHalf), "transformer.velocity");
  expect_close(vae(at::kHalf).decode(dumped("vae.latents").to(at::kHalf), Tiles::kNever),
               "vae.decoded");
}

class SingleFile : public Parts {};

TEST_P(SingleFile, IsTheSameTransformerUnderOtherNames) {
  const auto checkpoint = Checkpoint::open_file(folder_ / manifest_["single_file"]);
  EXPECT_TRUE(at::equal(velocity(flux_of(checkpoint, at::kFloat), at::kFloat),
                        velocity(flux(at::kFloat), at::kFloat)));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Parts,
                         testing::Values("basic", "schnell", "sharded", "prefixed", "demo"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Fixtures, SingleFile, testing::Values("basic"),
                         [](const auto& info) { return info.param; });

}  // namespace braid::parity_test
