// FLUX.2's autoencoder against diffusers' results.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include "dumps.h"
#include "models/vae/model.h"

namespace braid::flux2_vae_test {

class Flux2Vae : public testing::TestWithParam<const char*> {
 protected:
  Vae load(at::ScalarType dtype, Vae::Parts parts = Vae::Parts::kBoth) const {
    const auto checkpoint = fixture_.weights();
    return {config_of(fixture_.folder(), read_vae_config),
            Weights(checkpoint, vae_names(checkpoint), {.dtype = dtype}), parts};
  }
  Tensor given(const char* name, at::ScalarType dtype) const {
    return fixture_.dump()[name].to(dtype);
  }
  Tensor moments(const Vae& vae, Tiles tiles, at::ScalarType dtype) const {
    const auto made = vae.encode(given("pixels", dtype), tiles);
    return at::cat({made.mean, made.logvar}, 1);
  }

  const c10::InferenceMode no_autograd_;
  const PartFixture fixture_{GetParam()};
};

TEST_P(Flux2Vae, EqualsTheReference) {
  const auto vae = load(at::kFloat);
  const auto latents = given("latents", at::kFloat);
  fixture_.expect_equal(vae.decode(latents, Tiles::kNever), "decoded");
  fixture_.expect_equal(vae.decode(latents, Tiles::kWhereLarger), "decoded_tiled");
  fixture_.expect_equal(moments(vae, Tiles::kNever, at::kFloat), "moments");
  fixture_.expect_equal(moments(vae, Tiles::kWhereLarger, at::kFloat), "moments_tiled");
}

TEST_P(Flux2Vae, NormsPackedLatentsByItsStatistics) {
  const auto vae = load(at::kFloat);
  const auto unpacked = vae.to_decoder(given("normed", at::kFloat));
  fixture_.expect_equal(unpacked, "unpacked");
  fixture_.expect_equal(vae.from_encoder(unpacked), "packed");
}

TEST_P(Flux2Vae, Bfloat16IsAsExactAsTheReferences) {
  const auto vae = load(at::kBFloat16);
  const auto dtype = at::kBFloat16;
  fixture_.expect_as_exact_as_reference(vae.decode(given("latents", dtype), Tiles::kNever),
                                        "decoded");
  fixture_.expect_as_exact_as_reference(moments(vae, Tiles::kNever, dtype), "moments");
  const auto unpacked = vae.to_decoder(given("normed", dtype));
  fixture_.expect_as_exact_as_reference(unpacked, "unpacked");
  fixture_.expect_as_exact_as_reference(vae.from_encoder(unpacked), "packed");
}

TEST_P(Flux2Vae, DecodesWithoutItsEncoder) {
  const auto vae = load(at::kFloat, Vae::Parts::kDecoder);
  fixture_.expect_equal(vae.decode(given("latents", at::kFloat), Tiles::kNever), "decoded");
  fixture_.expect_equal(vae.to_decoder(given("normed", at::kFloat)), "unpacked");
  EXPECT_THROW(vae.encode(given("pixels", at::kFloat), Tiles::kNever), Error);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Flux2Vae, testing::Values("vae", "vae-thin"),
                         [](const auto& info) {
                           return std::string(info.param) == "vae" ? "Plain" : "ThinDecoder";
                         });

// Statistics do not count as parameters: two for each of 128 packed channels.
TEST(Flux2VaeConfig, HasTheNumberOfParametersOfThePublishedModel) {
  const auto config = config_of_text(read_vae_config, R"({"_class_name":"AutoencoderKLFlux2"})");
  EXPECT_EQ(parameters_of([&](const Weights& w) { (void)Vae(config, w); }), 84'046'115 + 2 * 128);
}

TEST(Flux2VaeFiles, ShouldHoldTheirStatistics) {
  const PartFixture fixture("vae");
  const auto checkpoint = fixture.weights();
  const auto refusal = [&](const std::string& name, const Tensor& tensor) -> std::string {
    auto tensors = tensors_of(checkpoint);
    if (tensor.defined())
      tensors[name] = tensor;
    else
      tensors.erase(name);
    const auto changed = checkpoint_of(tensors);
    try {
      const Vae vae(config_of(fixture.folder(), read_vae_config),
                    Weights(changed, vae_names(changed), {}));
    } catch (const InputError& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("bn.running_var", {}), testing::HasSubstr("bn.running_var"));
  EXPECT_THAT(refusal("bn.running_mean", at::zeros({31})), testing::HasSubstr("bn.running_mean"));
  EXPECT_THAT(refusal("bn.weight", at::zeros({32})), testing::HasSubstr("bn.weight"));
  EXPECT_EQ(refusal("bn.num_batches_tracked", {}), "accepted");
}

}  // namespace braid::flux2_vae_test
