// FLUX.2's transformer against diffusers' results, its files against their expected contents, and
// its parts against the whole.
#include "denoiser_suite.h"
#include "models/flux2/model.h"
#include "models/flux2/names.h"
#include "models/flux2/sharding.h"

namespace braid::flux2_test {

using testing::HasSubstr;

Flux2 load_flux2(const PartFixture& fixture, const Checkpoint& checkpoint, at::ScalarType dtype,
                 std::optional<BlockRange> run = {}) {
  return {config_of(fixture.folder(), read_flux2_config),
          Weights(checkpoint, flux2_names(checkpoint), {.dtype = dtype}), ops::attention, run};
}

class Flux2Parity : public DenoiserParity<load_flux2> {};

TEST_P(Flux2Parity, EqualsTheReference) { fixture_.expect_equal(output(at::kFloat), "velocity"); }

TEST_P(Flux2Parity, Bfloat16IsAsExactAsTheReferences) {
  fixture_.expect_as_exact_as_reference(output(at::kBFloat16), "velocity");
}

TEST_P(Flux2Parity, Float16RunsAndIsClose) {
  EXPECT_LT(relative_error(output(at::kHalf), fixture_.dump()["velocity"]), 0.1);
}

// The reference does so: 0.5015 becomes 0.5 in bfloat16, so 500 of 1000 steps; 501.5 would become
// 502.
TEST_P(Flux2Parity, RoundsTimestepsBeforeTheyAreMultiplied) {
  const auto model = load(at::kBFloat16);
  const auto velocity_at = [&](double time) {
    auto in = input(at::kBFloat16);
    in.timestep_B = at::full(in.timestep_B.sizes(), time);
    return velocity_of(model, in);
  };
  EXPECT_TRUE(at::equal(velocity_at(0.5015), velocity_at(0.5)));
  EXPECT_FALSE(at::equal(velocity_at(0.502), velocity_at(0.5)));
}

TEST_P(Flux2Parity, TwoPartsMakeTheSameBitsAsOne) {
  const auto shape = flux2_shape(config_of(fixture_.folder(), read_flux2_config));
  expect_parts_equal_whole(loader(at::kFloat), shape, input(at::kFloat));
}

TEST_P(Flux2Parity, WatchesTheStreamsOfEveryBlock) {
  auto in = input(at::kFloat);
  std::vector<std::string> seen;
  in.watch = [&](const std::string& where, const Tensor&) { seen.push_back(where); };
  velocity_of(load(at::kFloat), in);
  std::vector<std::string> all = {"img_in", "txt_in"};
  const auto add_blocks = [&](const std::string& kind, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      for (const auto* const stream : {" image", " text"})
        all.push_back(kind + std::to_string(i) + stream);
  };
  const auto config = config_of(fixture_.folder(), read_flux2_config);
  add_blocks("double_blocks.", config.num_double);
  add_blocks("single_blocks.", config.num_single);
  EXPECT_EQ(seen, all) << "in the order of the blocks";
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Flux2Parity, testing::Values("klein", "dev", "wide", "five"),
                         without_dashes);

class Flux2SingleFile : public Flux2Parity {};

TEST_P(Flux2SingleFile, IsTheSameTransformerUnderOtherNames) {
  const auto model = load_flux2(fixture_, fixture_.single_file(), at::kFloat);
  EXPECT_TRUE(at::equal(velocity_of(model, input(at::kFloat)), output(at::kFloat)));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Flux2SingleFile, testing::Values("klein", "dev"),
                         without_dashes);

class Flux2Files : public DenoiserFiles<load_flux2> {
 protected:
  Flux2Files() : DenoiserFiles("klein") {}
};

TEST_F(Flux2Files, ShouldHoldEveryTensorInItsShapeAndNoOthers) {
  const std::string name = "single_transformer_blocks.1.attn.to_out.weight";
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_THAT(refusal([&](auto& tensors) { tensors.erase(name); }), HasSubstr(name));
  EXPECT_THAT(refusal([&](auto& tensors) { tensors[name] = tensors[name].t().contiguous(); }),
              HasSubstr(name));
  EXPECT_THAT(refusal([&](auto& tensors) { tensors["x_embedder.bias"] = tensors[name]; }),
              HasSubstr("x_embedder.bias"));
}

TEST_F(Flux2Files, GuidanceIsGivenExactlyToModelsDistilledWithIt) {
  const auto model = load_flux2(fixture_, fixture_.weights(), at::kFloat);
  auto in = denoiser_input(fixture_.dump(), at::kFloat);
  in.guidance_B = at::ones({1});
  EXPECT_THROW(velocity_of(model, in), Error);
}

// Just the shapes from which sizes are inferred.
std::map<std::string, Tensor> tensors_of_a_file(std::int64_t head_width) {
  const auto of = [](at::IntArrayRef shape) { return at::zeros(shape, at::kBFloat16); };
  return {{"single_stream_modulation.lin.weight", of({1, 1})},
          {"img_in.weight", of({256, 12})},
          {"txt_in.weight", of({256, 30})},
          {"time_in.in_layer.weight", of({256, 64})},
          {"guidance_in.in_layer.weight", of({256, 64})},
          {"double_blocks.0.img_mlp.2.weight", of({256, 768})},
          {"double_blocks.0.img_attn.norm.query_norm.scale", of({head_width})},
          {"single_blocks.0.linear2.weight", of({256, 1024})},
          {"single_blocks.1.linear2.weight", of({256, 1024})},
          {"final_layer.linear.weight", of({20, 256})}};
}

TEST(Flux2Config, OfASingleFileFollowsFromItsShapes) {
  const auto c = infer_flux2_config(checkpoint_of(tensors_of_a_file(128)));
  EXPECT_EQ(c.num_heads, 2);
  EXPECT_EQ(c.num_double, 1);
  EXPECT_EQ(c.num_single, 2);
  EXPECT_EQ(c.mlp_hidden, 768);
  EXPECT_EQ(c.in_channels, 12);
  EXPECT_EQ(c.out_channels, 20);
  EXPECT_EQ(c.text_width, 30);
  EXPECT_EQ(c.sinusoid, 64);
  EXPECT_TRUE(c.guidance_embeds);
  EXPECT_EQ(c.theta, 2000);
  EXPECT_THROW(infer_flux2_config(checkpoint_of(tensors_of_a_file(64))), InputError);
  auto without_blocks = tensors_of_a_file(128);
  for (const auto* part : {"double_blocks.0.img_mlp.2.weight", "single_blocks.0.linear2.weight"})
    without_blocks.erase(part);
  EXPECT_THROW(infer_flux2_config(checkpoint_of(without_blocks)), InputError);
}

// Without double blocks: linear2 takes the attention's 256 channels and the MLP's.
TEST(Flux2Config, OfASingleFileOfSingleBlocksFollowsFromTheirs) {
  auto tensors = tensors_of_a_file(128);
  for (const auto* part :
       {"double_blocks.0.img_mlp.2.weight", "double_blocks.0.img_attn.norm.query_norm.scale"})
    tensors.erase(part);
  tensors["single_blocks.0.norm.query_norm.scale"] = at::zeros({128}, at::kBFloat16);
  const auto c = infer_flux2_config(checkpoint_of(tensors));
  EXPECT_EQ(c.num_double, 0);
  EXPECT_EQ(c.num_single, 2);
  EXPECT_EQ(c.num_heads, 2);
  EXPECT_EQ(c.mlp_hidden, 1024 - 256);
}

TEST(Flux2Config, HasTheDefaultsOfTheReferenceClass) {
  const auto c = config_of_text(read_flux2_config);
  EXPECT_EQ(c.hidden(), 6144);
  EXPECT_EQ(c.mlp_hidden, 18432);
  EXPECT_EQ(c.num_double, 8);
  EXPECT_EQ(c.num_single, 48);
  EXPECT_EQ(c.text_width, 15360);
  EXPECT_EQ(c.theta, 2000);
  EXPECT_TRUE(c.guidance_embeds);
}

TEST(Flux2Config, OfPublishedModelsHasTheirNumbersOfParameters) {
  const auto parameters = [](const Flux2Config& c) {
    return parameters_of([&](const Weights& w) { (void)Flux2(c, w); });
  };
  EXPECT_EQ(parameters({}), 32'223'281'152);
  EXPECT_EQ(parameters({.num_double = 8,
                        .num_single = 24,
                        .num_heads = 32,
                        .mlp_hidden = 12288,
                        .text_width = 12288,
                        .guidance_embeds = false}),
            9'078'581'248);
  EXPECT_EQ(parameters({.num_double = 5,
                        .num_single = 20,
                        .num_heads = 24,
                        .mlp_hidden = 9216,
                        .text_width = 7680,
                        .guidance_embeds = false}),
            3'875'544'576);
}

// Per token and block: a double block of dev has 981 467 648 parameters and a single one half as
// many. Norms of queries and keys multiply nothing.
TEST(Flux2Shape, CountsTheFlopsOfItsWeights) {
  const auto shape = flux2_shape(Flux2Config());
  EXPECT_EQ(shape.num_blocks(), 56);
  EXPECT_EQ(shape.blocks[0].dense_flops, (981'467'648 - 4 * 128));
  EXPECT_EQ(shape.blocks[1].dense_flops, 2 * (490'733'824 - 2 * 128));
}

}  // namespace braid::flux2_test
