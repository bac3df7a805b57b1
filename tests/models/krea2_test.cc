// Krea 2's transformer against diffusers' results, its files against their expected contents, and
// its parts against the whole.
#include "denoiser_suite.h"
#include "models/krea2/model.h"
#include "models/krea2/names.h"
#include "models/krea2/sharding.h"

namespace braid::krea2_test {

using testing::HasSubstr;

Krea2 load_krea2(const PartFixture& fixture, const Checkpoint& checkpoint, at::ScalarType dtype,
                 std::optional<BlockRange> run = {}) {
  return {config_of(fixture.folder(), read_krea2_config),
          Weights(checkpoint, krea2_names(checkpoint), {.dtype = dtype}), ops::attention, run};
}

class Krea2Parity : public DenoiserParity<load_krea2> {};

TEST_P(Krea2Parity, EqualsTheReference) { fixture_.expect_equal(output(at::kFloat), "velocity"); }

TEST_P(Krea2Parity, Bfloat16IsAsExactAsTheReferences) {
  fixture_.expect_as_exact_as_reference(output(at::kBFloat16), "velocity");
}

TEST_P(Krea2Parity, Float16RunsAndIsClose) {
  EXPECT_LT(relative_error(output(at::kHalf), fixture_.dump()["velocity"]), 0.02);
}

// Wherever they are cut: the part with the text's fusion comes last, and a step's parts get the
// text from it.
TEST_P(Krea2Parity, TwoPartsMakeTheSameBitsAsOne) {
  const auto shape = krea2_shape(config_of(fixture_.folder(), read_krea2_config));
  const auto in = input(at::kFloat);
  const auto check = [&](const Krea2& first, const Places& places) {
    EXPECT_THAT(places, testing::Contains("img_in"));
    EXPECT_THAT(places, testing::Not(testing::Contains("txt_in")));
    EXPECT_THAT(message_of<Error>([&] { first.advance(in, {}); }),
                HasSubstr("text that was fused"));
  };
  expect_parts_equal_whole<TextRefined::kBeforeIt>(loader(at::kFloat), shape, in, check);
}

TEST_P(Krea2Parity, ModulatesAllStepsOfAPictureAtOnce) {
  expect_steps_modulated_at_once(load(at::kFloat), input(at::kFloat));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Krea2Parity,
                         testing::Values("krea2", "krea2-odd", "krea2-plain"), without_dashes);

class Krea2SingleFile : public Krea2Parity {};

TEST_P(Krea2SingleFile, IsTheSameTransformerUnderOtherNames) {
  const auto file = fixture_.single_file();
  const bool is_prefixed = file.find("model.diffusion_model.txtfusion.projector.weight") != nullptr;
  EXPECT_EQ(is_prefixed, GetParam() == "krea2-odd");
  const auto model = load_krea2(fixture_, file, at::kFloat);
  EXPECT_LT(relative_error(velocity_of(model, input(at::kFloat)), output(at::kFloat)), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Krea2SingleFile, testing::Values("krea2", "krea2-odd"),
                         bare_or_prefixed);

class Krea2Files : public DenoiserFiles<load_krea2> {
 protected:
  Krea2Files() : DenoiserFiles("krea2") {}
};

TEST_F(Krea2Files, ShouldHoldEveryTensorInItsShapeAndNoOthers) {
  const std::string name = "text_fusion.refiner_blocks.1.ff.up.weight";
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_THAT(refusal([&](auto& tensors) { tensors.erase(name); }), HasSubstr(name));
  EXPECT_THAT(refusal([&](auto& tensors) { tensors[name] = tensors[name].t().contiguous(); }),
              HasSubstr("text_fusion.refiner_blocks.1.ff"));
  const std::string table = "transformer_blocks.1.scale_shift_table";
  EXPECT_THAT(refusal([&](auto& tensors) { tensors[table] = tensors[table].t().contiguous(); }),
              HasSubstr(table));
  EXPECT_THAT(refusal([&](auto& tensors) {
                tensors["transformer_blocks.0.attn.to_q.bias"] = tensors[table].flatten();
              }),
              HasSubstr("transformer_blocks.0.attn.to_q.bias"));
}

// Krea's own files, which the fixtures of single files follow, have a block's table as one vector.
TEST_F(Krea2Files, DoNotHaveTablesAsVectorsUnderDiffusersNames) {
  const std::string table = "transformer_blocks.1.scale_shift_table";
  EXPECT_THAT(refusal([&](auto& tensors) { tensors[table] = tensors[table].flatten(); }),
              HasSubstr(table));
}

TEST_F(Krea2Files, MayNumberSomeLayersAsQuantizedOnesDo) {
  auto tensors = tensors_of(fixture_.single_file());
  for (const char* const kind : {"weight", "bias"}) {
    tensors["tproj.0." + std::string(kind)] = tensors.at("tproj.1." + std::string(kind));
    tensors.erase("tproj.1." + std::string(kind));
  }
  tensors["txtmlp.1.scale"] = tensors.at("txtmlp.0.scale");
  tensors.erase("txtmlp.0.scale");
  EXPECT_NO_THROW(load_krea2(fixture_, checkpoint_of(tensors), at::kFloat));
}

TEST_F(Krea2Files, ReferencesAreRefused) {
  const auto model = load_krea2(fixture_, fixture_.weights(), at::kFloat);
  auto in = denoiser_input(fixture_.dump(), at::kFloat);
  in.references = {in.noise};
  EXPECT_THROW(velocity_of(model, in), Error);
}

// Just the shapes from which sizes are inferred, in the published names.
std::map<std::string, Tensor> shapes_of_a_krea2_file(std::int64_t head_width) {
  std::map<std::string, Tensor> tensors;
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    tensors[name] = at::zeros(shape, at::kBFloat16);
  };
  const auto add_block = [&](const std::string& block, std::int64_t width, std::int64_t heads,
                             std::int64_t kv_width, std::int64_t mlp) {
    add(block + "prenorm.scale", {width});
    add(block + "attn.qknorm.qnorm.scale", {width / heads});
    add(block + "attn.wk.weight", {kv_width, 1});
    add(block + "mlp.gate.weight", {mlp, 1});
  };
  add("first.weight", {4 * head_width, 36});
  add("tmlp.0.weight", {4 * head_width, 128});
  add("txtfusion.projector.weight", {1, 7});
  for (const char* const block : {"blocks.0.", "blocks.1.", "blocks.2."})
    add_block(block, 4 * head_width, 4, 2 * head_width, 80);
  add_block("txtfusion.layerwise_blocks.0.", 24, 3, 8, 50);
  add_block("txtfusion.refiner_blocks.0.", 24, 3, 8, 50);
  add_block("txtfusion.refiner_blocks.1.", 24, 3, 8, 50);
  return tensors;
}

TEST(Krea2Config, OfASingleFileFollowsFromItsShapes) {
  const auto c = infer_krea2_config(checkpoint_of(shapes_of_a_krea2_file(128)));
  EXPECT_EQ(c.token_width, 36);
  EXPECT_EQ(c.sinusoid, 128);
  EXPECT_EQ(c.num_taps, 7);
  EXPECT_EQ(c.num_layers, 3);
  EXPECT_EQ(c.num_tap_blocks, 1);
  EXPECT_EQ(c.num_text_blocks, 2);
  EXPECT_EQ(c.image.hidden, 512);
  EXPECT_EQ(c.image.num_heads, 4);
  EXPECT_EQ(c.image.num_kv_heads, 2);
  EXPECT_EQ(c.image.mlp_hidden, 80);
  EXPECT_EQ(c.text.hidden, 24);
  EXPECT_EQ(c.text.num_heads, 3);
  EXPECT_EQ(c.text.num_kv_heads, 1);
  EXPECT_EQ(c.text.mlp_hidden, 50);
  EXPECT_THROW(infer_krea2_config(checkpoint_of(shapes_of_a_krea2_file(64))), InputError);
  EXPECT_THROW(infer_krea2_config(checkpoint_of({})), InputError);
}

TEST(Krea2Config, HasTheDefaultsOfTheReferenceClass) {
  const auto c = config_of_text(read_krea2_config);
  EXPECT_EQ(c.image.hidden, 6144);
  EXPECT_EQ(c.image.head_width(), 128);
  EXPECT_EQ(c.image.kv_width(), 1536);
  EXPECT_EQ(c.text.head_width(), 128);
  EXPECT_EQ(c.num_layers, 28);
  EXPECT_EQ(c.num_taps, 12);
}

TEST(Krea2Config, RefusesSizesThatDoNotFit) {
  const auto refusal = [](const char* text) {
    return message_of([&] { config_of_text(read_krea2_config, text); });
  };
  EXPECT_THAT(refusal(R"({"num_key_value_heads": 7})"),
              HasSubstr("'num_key_value_heads', 7, should divide 'num_attention_heads', 48"));
  EXPECT_THAT(refusal(R"({"text_num_attention_heads": 7})"),
              HasSubstr("'text_num_attention_heads', 7, should divide 'text_hidden_dim', 2560"));
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [32, 48, 32]})"),
              HasSubstr("'axes_dims_rope' should sum to the width of a head, 128"));
  EXPECT_THAT(refusal(R"({"axes_dims_rope": [31, 49, 48]})"), HasSubstr("even numbers"));
  EXPECT_THAT(refusal(R"({"timestep_embed_dim": 255})"), HasSubstr("should be even"));
  EXPECT_THAT(refusal(R"({"rope_theta": 0})"), HasSubstr("'rope_theta' should be above 0"));
  EXPECT_THAT(refusal(R"({"_class_name": "FluxTransformer2DModel"})"),
              HasSubstr("should describe a Krea2Transformer2DModel"));
}

// Counted with diffusers' class on the meta device.
TEST(Krea2Config, OfThePublishedModelHasItsNumberOfParameters) {
  EXPECT_EQ(parameters_of([](const Weights& w) { (void)Krea2({}, w); }), 12'820'073'036);
}

std::vector<std::int64_t> heads_of(const std::vector<Share>& shares, std::int64_t begin) {
  std::vector<std::int64_t> heads;
  for (const auto& share : shares)
    for (auto row = share.begin; row < share.begin + share.count; row += 128)
      if (row >= begin && row < begin + 1536) heads.push_back((row - begin) / 128);
  return heads;
}

// Six queries of a rank need two heads of keys, one of them twice as often as the other.
TEST(Krea2Sharding, CopiesHeadsOfKeysWhereRanksCutTheirGroups) {
  const auto shares = [](int rank, int size) {
    const auto table = krea2_sharding({}, SharedModulation::kYes);
    return shares_of(*find_sharding(table, "transformer_blocks.3.attn.kv"), 2 * 1536, rank, size,
                     "");
  };
  using Heads = std::vector<std::int64_t>;
  for (const std::int64_t part : {0, 1536}) {
    EXPECT_EQ(heads_of(shares(0, 8), part), (Heads{0, 0, 1}));
    EXPECT_EQ(heads_of(shares(1, 8), part), (Heads{1, 2, 2}));
    EXPECT_EQ(heads_of(shares(7, 8), part), (Heads{10, 11, 11}));
    EXPECT_EQ(heads_of(shares(1, 2), part), (Heads{6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(heads_of(shares(3, 4), part), (Heads{9, 10, 11}));
    EXPECT_EQ(heads_of(shares(5, 16), part), (Heads{3, 4, 4}));
    EXPECT_EQ(heads_of(shares(47, 48), part), (Heads{11}));
  }
  EXPECT_EQ(shares(3, 4).size(), 2u);  // a run of keys, one of values
}

// A block has 434 159 872 parameters. Its norms and its table multiply no tokens.
TEST(Krea2Shape, CountsTheFlopsOfItsWeights) {
  const auto shape = krea2_shape({});
  EXPECT_EQ(shape.num_blocks(), 29);
  EXPECT_EQ(shape.blocks.front().dense_flops, 2.0 * (434'159'872 - 8 * 6144 - 2 * 128));
  EXPECT_TRUE(shape.has_refined_text());
}

}  // namespace braid::krea2_test
