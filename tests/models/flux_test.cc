// FLUX.1's transformer where fixtures do not take it: residuals that blocks share, numbers rounded
// before they are multiplied, and configurations read off the shapes of a file.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include "denoiser_inputs.h"
#include "dumps.h"
#include "message_of.h"
#include "models/clip/model.h"
#include "models/flux/model.h"
#include "models/flux/sharding.h"
#include "models/t5/model.h"

namespace braid::flux_test {

using testing::HasSubstr;

const FluxConfig kSmall{.in_channels = 8,
                        .out_channels = 8,
                        .num_double = 5,
                        .num_single = 3,
                        .num_heads = 2,
                        .head_width = 12,
                        .text_width = 10,
                        .pooled_width = 6,
                        .guidance_embeds = true,
                        .axes = {4, 4, 4}};
constexpr std::int64_t kNoise = 4, kText = 3;

DenoiserInput input(at::ScalarType dtype) {
  const auto generator = at::detail::createCPUGenerator(41);
  const auto draw = [&](at::IntArrayRef shape) {
    return at::randn(shape, generator, at::kFloat).to(dtype);
  };
  const auto ids = [&](std::int64_t length) {
    return at::randint(0, 9, {length, 3}, generator, at::kFloat);
  };
  return {.noise = {draw({1, kNoise, 8}), ids(kNoise)},
          .text = {draw({1, kText, 10}), ids(kText)},
          .pooled_BC = draw({1, 6}),
          .timestep_B = at::full({1}, 0.5),
          .guidance_B = at::full({1}, 3.5)};
}

class FluxTest : public testing::Test {
 protected:
  const c10::InferenceMode no_autograd_;
};

// With n blocks and r residuals, block i takes residual i / ceil(n / r): diffusers' interval.
TEST_F(FluxTest, BlocksShareResidualsInRunsOfEqualLength) {
  const Flux flux(kSmall, Weights::synthetic({}));
  const auto velocity = [&](const std::vector<Tensor>& doubles,
                            const std::vector<Tensor>& singles) {
    auto in = input(at::kFloat);
    in.residuals = {.doubles = doubles, .singles = singles};
    return velocity_of(flux, in);
  };
  const auto drawn = at::randn({4, 1, kNoise, kSmall.hidden()});
  const auto a = drawn[0], b = drawn[1], c = drawn[2], d = drawn[3];
  EXPECT_TRUE(at::equal(velocity({a, b}, {c, d}), velocity({a, a, a, b, b}, {c, c, d})));
  EXPECT_TRUE(at::equal(velocity({a, b, c}, {}), velocity({a, a, b, b, c}, {})));
  EXPECT_TRUE(at::equal(velocity({a, b, c, d}, {}), velocity({a, a, b, b, c}, {})));
  EXPECT_TRUE(at::equal(velocity({}, {a}), velocity({}, {a, a, a})));
  EXPECT_FALSE(at::equal(velocity({a, b}, {}), velocity({a, a}, {})));
}

// The reference does so: 0.5015 becomes 0.5 in bfloat16, so 500 of 1000 steps; a guidance of 3.501
// becomes 3.5, then 3504.
TEST_F(FluxTest, RoundsTimestepsAndGuidanceBeforeTheyAreMultiplied) {
  const Flux flux(kSmall, Weights::synthetic({.dtype = at::kBFloat16}));
  const auto velocity = [&](double time, double guidance) {
    auto in = input(at::kBFloat16);
    in.timestep_B = at::full({1}, time);
    in.guidance_B = at::full({1}, guidance);
    return velocity_of(flux, in);
  };
  const auto want = velocity(0.5, 3.5);
  EXPECT_TRUE(at::equal(velocity(0.5015, 3.5), want));
  EXPECT_TRUE(at::equal(velocity(0.5, 3.501), want));
  EXPECT_FALSE(at::equal(velocity(0.502, 3.5), want));
  EXPECT_FALSE(at::equal(velocity(0.5, 3.52), want));
}

TEST_F(FluxTest, GuidanceIsGivenExactlyToModelsDistilledWithIt) {
  auto plain = kSmall;
  plain.guidance_embeds = false;
  auto in = input(at::kFloat);
  EXPECT_THROW(velocity_of(Flux(plain, Weights::synthetic({})), in), Error);
  in.guidance_B = at::Tensor();
  EXPECT_NO_THROW(velocity_of(Flux(plain, Weights::synthetic({})), in));
  EXPECT_THROW(velocity_of(Flux(kSmall, Weights::synthetic({})), in), Error);
}

// ------------------------------------------------------------------------------- single files

// Just the shapes from which sizes are inferred, in Black Forest Labs' names.
std::map<std::string, Tensor> tensors_of_a_file(const std::string& prefix, int doubles,
                                                int singles) {
  std::map<std::string, Tensor> tensors;
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    tensors[prefix + name] = at::zeros(shape, at::kBFloat16);
  };
  add("img_in.weight", {256, 48});
  add("txt_in.weight", {256, 30});
  add("vector_in.in_layer.weight", {256, 20});
  add("final_layer.linear.weight", {16, 256});
  for (int i = 0; i < doubles; ++i) {
    const auto block = "double_blocks." + std::to_string(i);
    add(block + ".img_mod.lin.weight", {1, 1});
    add(block + ".img_attn.norm.query_norm.scale", {128});
  }
  for (int i = 0; i < singles; ++i) {
    const auto block = "single_blocks." + std::to_string(i);
    add(block + ".modulation.lin.weight", {1, 1});
    add(block + ".norm.query_norm.scale", {128});
  }
  return tensors;
}

TEST(FluxConfigOfAFile, FollowsFromItsShapes) {
  for (const std::string prefix : {"", "model.diffusion_model.", "diffusion_model."})
    for (const auto& [doubles, singles] : {std::pair(2, 3), {0, 1}, {1, 0}}) {
      auto tensors = tensors_of_a_file(prefix, doubles, singles);
      const auto plain = infer_flux_config(checkpoint_of(tensors));
      EXPECT_EQ(plain.in_channels, 48) << "latents and what stands beside them";
      EXPECT_EQ(plain.out_channels, 16);
      EXPECT_EQ(plain.num_double, doubles);
      EXPECT_EQ(plain.num_single, singles);
      EXPECT_EQ(plain.num_heads, 2);
      EXPECT_EQ(plain.head_width, 128);
      EXPECT_EQ(plain.text_width, 30);
      EXPECT_EQ(plain.pooled_width, 20);
      EXPECT_FALSE(plain.guidance_embeds);
      tensors[prefix + "guidance_in.in_layer.weight"] = at::zeros({256, 256}, at::kBFloat16);
      EXPECT_TRUE(infer_flux_config(checkpoint_of(tensors)).guidance_embeds);
    }
}

TEST(FluxConfigOfAFile, IsRefusedWhereItsShapesCannotBeThose) {
  const auto refusal = [](const std::string& name, const Tensor& tensor) {
    auto tensors = tensors_of_a_file("", 1, 1);
    if (tensor.defined())
      tensors[name] = tensor;
    else
      tensors.erase(name);
    return message_of([&] { infer_flux_config(checkpoint_of(tensors)); });
  };
  const auto of = [](at::IntArrayRef shape) { return at::zeros(shape, at::kBFloat16); };
  const std::string norm = "double_blocks.0.img_attn.norm.query_norm.scale";
  EXPECT_EQ(refusal("unknown", of({1})), "");
  EXPECT_THAT(refusal("txt_in.weight", {}), HasSubstr("txt_in.weight"));
  EXPECT_THAT(refusal("txt_in.weight", of({256})), HasSubstr("txt_in.weight"));
  EXPECT_THAT(refusal(norm, of({64})), HasSubstr("should sum to the width of a head, 64"));
  EXPECT_THAT(refusal(norm, of({100})), HasSubstr("do not divide the hidden width 256"));
  EXPECT_THAT(refusal(norm, of({0})), HasSubstr("do not divide"));
}

// As the reference class has it: Fill and Canny take more channels than they return.
TEST(FluxConfigOfJson, ReturnsAsManyChannelsAsItTakesUnlessItSaysOtherwise) {
  const auto channels = [](const char* text) {
    const auto c = config_of_text(read_flux_config, text);
    return std::pair(c.in_channels, c.out_channels);
  };
  using Channels = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(channels("{}"), Channels(64, 64));
  EXPECT_EQ(channels(R"({"in_channels":32})"), Channels(32, 32));
  EXPECT_EQ(channels(R"({"in_channels":384,"out_channels":64})"), Channels(384, 64));
  EXPECT_EQ(channels(R"({"in_channels":32,"out_channels":null})"), Channels(32, 32));
}

}  // namespace braid::flux_test
