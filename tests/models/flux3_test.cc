// FLUX.3's transformer against diffusers' results, its files against their expected contents, and
// its parts against the whole.
#include "denoiser_suite.h"
#include "models/flux3/model.h"
#include "models/flux3/names.h"
#include "models/flux3/sharding.h"

namespace braid::flux3_test {

using testing::HasSubstr;

Flux3 load_flux3(const PartFixture& fixture, const Checkpoint& checkpoint, at::ScalarType dtype,
                 std::optional<BlockRange> run = {}) {
  return {config_of(fixture.folder(), read_flux3_config),
          Weights(checkpoint, flux3_names(checkpoint), {.dtype = dtype}), ops::attention, run};
}

class Flux3Parity : public DenoiserParity<load_flux3> {};

TEST_P(Flux3Parity, EqualsTheReference) { fixture_.expect_equal(output(at::kFloat), "velocity"); }

TEST_P(Flux3Parity, Bfloat16IsAsExactAsTheReferences) {
  fixture_.expect_as_exact_as_reference(output(at::kBFloat16), "velocity");
}

TEST_P(Flux3Parity, Float16RunsAndIsClose) {
  EXPECT_LT(relative_error(output(at::kHalf), fixture_.dump()["velocity"]), 0.02);
}

// Wherever they are cut, also between the blocks of two modes.
TEST_P(Flux3Parity, TwoPartsMakeTheSameBitsAsOne) {
  const auto shape = flux3_shape(config_of(fixture_.folder(), read_flux3_config));
  expect_parts_equal_whole(loader(at::kFloat), shape, input(at::kFloat),
                           [](const Flux3&, const Places& places) {
                             EXPECT_THAT(places, testing::Contains("image_in"));
                             EXPECT_THAT(places, testing::Contains("single_blocks.0 text"));
                           });
}

TEST_P(Flux3Parity, ModulatesAllStepsOfAPictureAtOnce) {
  expect_steps_modulated_at_once(load(at::kFloat), input(at::kFloat));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Flux3Parity,
                         testing::Values("flux3", "flux3-map", "flux3-plain", "flux3-eps"),
                         without_dashes);

class Flux3SingleFile : public Flux3Parity {};

TEST_P(Flux3SingleFile, IsTheSameTransformerUnderOtherNames) {
  const auto file = fixture_.single_file();
  const bool is_prefixed = file.find("model.diffusion_model.emb_in.image.weight") != nullptr;
  EXPECT_EQ(is_prefixed, GetParam() == "flux3-map");
  const auto model = load_flux3(fixture_, file, at::kFloat);
  EXPECT_LT(relative_error(velocity_of(model, input(at::kFloat)), output(at::kFloat)), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Flux3SingleFile, testing::Values("flux3", "flux3-map"),
                         bare_or_prefixed);

class Flux3Files : public DenoiserFiles<load_flux3> {
 protected:
  Flux3Files() : DenoiserFiles("flux3") {}
};

TEST_F(Flux3Files, ShouldHoldEveryTensorInItsShapeAndNoOthers) {
  const std::string name = "mode_blocks.image_cond.1.ff.linear_out.weight";
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_THAT(refusal([&](auto& tensors) { tensors.erase(name); }), HasSubstr(name));
  EXPECT_THAT(refusal([&](auto& tensors) { tensors[name] = tensors[name].t().contiguous(); }),
              HasSubstr(name));
  EXPECT_THAT(refusal([&](auto& tensors) {
                tensors["txt_mode_blocks.0.attn.to_q.bias"] = at::zeros({32});
              }),
              HasSubstr("txt_mode_blocks.0.attn.to_q.bias"));
}

TEST_F(Flux3Files, MayHoldHeadsThatOnlyTrainingNeeds) {
  for (const std::string prefix : {"", "model.diffusion_model."}) {
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, tensor] : tensors_of(fixture_.single_file()))
      tensors[prefix + name] = tensor;
    tensors[prefix + "repa_projectors.0.weight"] = at::zeros({3, 3});
    EXPECT_NO_THROW(load_flux3(fixture_, checkpoint_of(tensors), at::kFloat)) << prefix;
  }
}

// A flow map without the timestep that it leads to would be another model, and the reverse.
TEST(Flux3Steps, TellOnlyFlowMapsWhereTheyLead) {
  const c10::InferenceMode no_autograd;
  for (const char* const name : {"flux3", "flux3-map"}) {
    const PartFixture fixture{name};
    const auto model = load_flux3(fixture, fixture.weights(), at::kFloat);
    auto in = denoiser_input(fixture.dump(), at::kFloat);
    const bool is_map = in.target_timestep_B.defined();
    in.target_timestep_B = is_map ? Tensor() : in.timestep_B;
    EXPECT_THAT(message_of<Error>([&] { velocity_of(model, in); }),
                HasSubstr(is_map ? "is a flow map, its input lacks" : "is no flow map"));
  }
}

// Just the shapes from which sizes are inferred, in the published names.
std::map<std::string, Tensor> shapes_of_a_flux3_file(std::int64_t head_width) {
  std::map<std::string, Tensor> tensors;
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    tensors[name] = at::zeros(shape, at::kBFloat16);
  };
  add("emb_in.image.weight", {4 * head_width, 36});
  add("emb_in.image_cond.weight", {4 * head_width, 40});
  add("txt_in.weight", {4 * head_width, 48});
  add("time_in.in_layer.weight", {4 * head_width, 64});
  add("ref_time_in.in_layer.weight", {4 * head_width, 64});
  for (const char* const block : {"txt_mode_blocks.0.", "single_blocks.0.", "single_blocks.1."}) {
    add(std::string(block) + "norm.query_norm.scale", {head_width});
    add(std::string(block) + "mlp_out.weight", {4 * head_width, 80});
  }
  return tensors;
}

TEST(Flux3Config, OfASingleFileFollowsFromItsShapes) {
  const auto c = infer_flux3_config(checkpoint_of(shapes_of_a_flux3_file(128)));
  EXPECT_EQ(c.token_width, 36);
  EXPECT_EQ(c.reference_width, 40);
  EXPECT_EQ(c.text_width, 48);
  EXPECT_EQ(c.sinusoid, 64);
  EXPECT_EQ(c.num_mode, 1);
  EXPECT_EQ(c.num_single, 2);
  EXPECT_EQ(c.num_heads, 4);
  EXPECT_EQ(c.head_width, 128);
  EXPECT_EQ(c.mlp_hidden, 80);
  EXPECT_TRUE(c.flow_map);
  EXPECT_THROW(infer_flux3_config(checkpoint_of(shapes_of_a_flux3_file(64))), InputError);
  EXPECT_THROW(infer_flux3_config(checkpoint_of({})), InputError);
}

TEST(Flux3Config, HasTheDefaultsOfTheReferenceClass) {
  const auto c = config_of_text(read_flux3_config);
  EXPECT_EQ(c.hidden(), 3072);
  EXPECT_EQ(c.mlp_hidden, 9216);
  EXPECT_EQ(c.text_width, 20480);
  EXPECT_EQ(c.num_mode, 5);
  EXPECT_EQ(c.num_single, 28);
  EXPECT_FALSE(c.flow_map);
}

TEST(Flux3Config, RefusesSizesThatDoNotFit) {
  const auto refusal = [](const char* text) {
    return message_of([&] { config_of_text(read_flux3_config, text); });
  };
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [32, 48, 48]})"), HasSubstr("should have 4 axes"));
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [32, 32, 32, 48]})"),
              HasSubstr("'axes_dims_rope' should sum to the width of a head, 128"));
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [31, 33, 32, 32]})"), HasSubstr("even numbers"));
  EXPECT_THAT(refusal(R"({"timestep_channels": 255})"), HasSubstr("should be even"));
  EXPECT_THAT(refusal(R"({"rope_theta": 0})"), HasSubstr("'rope_theta' should be above 0"));
  EXPECT_THAT(refusal(R"({"eps": -1})"), HasSubstr("'eps' should not be below 0, it is -1"));
  EXPECT_THAT(refusal(R"({"mlp_ratio": 65})"), HasSubstr("'mlp_ratio'"));
  EXPECT_THAT(refusal(R"({"_class_name": "Flux2Transformer2DModel"})"),
              HasSubstr("should describe a Flux3Transformer2DModel"));
}

// Counted with diffusers on meta tensors.
TEST(Flux3Config, OfThePublishedModelsHasTheirNumbersOfParameters) {
  EXPECT_EQ(parameters_of([](const Weights& w) { (void)Flux3({}, w); }), 5'538'458'368);
  EXPECT_EQ(parameters_of([](const Weights& w) { (void)Flux3({.flow_map = true}, w); }),
            5'548'681'984);
}

// A block has 122 683 648 parameters. Its norms multiply no tokens.
TEST(Flux3Shape, CountsTheFlopsOfItsWeights) {
  const auto shape = flux3_shape({});
  EXPECT_EQ(shape.num_blocks(), 3 * 5 + 28);
  for (const auto& kind : shape.blocks) EXPECT_EQ(kind.dense_flops, 2.0 * (122'683'648 - 2 * 128));
}

}  // namespace braid::flux3_test
