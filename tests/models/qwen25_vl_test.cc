// Qwen2.5-VL's windows, configs and files. Its embeddings are compared with transformers' in
// tests/pipeline/parity_test.cc, as parts of whole requests.
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>

#include "dumps.h"
#include "message_of.h"
#include "models/causal_lm/names.h"
#include "models/qwen25_vl/model.h"
#include "models/qwen25_vl/names.h"

namespace braid::qwen25_vl_test {

using testing::HasSubstr;

const auto kEncoder = kParity / "qwen-image-edit/model/text_encoder";

Qwen25VlConfig encoder_config() { return config_of(kEncoder, read_qwen25_vl_config); }

Qwen25Vl load_encoder(const Checkpoint& checkpoint) {
  return {encoder_config(),
          Weights(checkpoint, qwen25_vl_names(checkpoint), {.dtype = at::kFloat})};
}

// Each window's tokens, in the order in which they are computed.
std::vector<std::vector<std::int64_t>> windows_in_order(std::int64_t rows, std::int64_t columns) {
  const auto windows = windows_of(rows, columns, 4);
  std::vector<std::vector<std::int64_t>> all;
  auto next = windows.order.begin();
  for (const auto& run : windows.runs)
    for (std::int64_t i = 0; i < run.count; ++i, next += run.tokens)
      all.emplace_back(next, next + run.tokens);
  EXPECT_EQ(next, windows.order.end());
  return all;
}

// Those of transformers' get_vision_window_index.
TEST(VisionWindows, HoldTransformersTokens) {
  using testing::UnorderedElementsAre;
  using Window = std::vector<std::int64_t>;
  EXPECT_THAT(windows_in_order(3, 10),
              UnorderedElementsAre(Window{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23},
                                   Window{4, 5, 6, 7, 14, 15, 16, 17, 24, 25, 26, 27},
                                   Window{8, 9, 18, 19, 28, 29}));
  EXPECT_THAT(windows_in_order(9, 6),
              UnorderedElementsAre(
                  Window{0, 1, 2, 3, 6, 7, 8, 9, 12, 13, 14, 15, 18, 19, 20, 21},
                  Window{4, 5, 10, 11, 16, 17, 22, 23},
                  Window{24, 25, 26, 27, 30, 31, 32, 33, 36, 37, 38, 39, 42, 43, 44, 45},
                  Window{28, 29, 34, 35, 40, 41, 46, 47}, Window{48, 49, 50, 51}, Window{52, 53}));
  EXPECT_EQ(windows_of(4, 4, 4).runs.size(), 1u);
}

// The newer ones are those in memory of transformers 5.
TEST(Qwen25VlFiles, HaveOlderAndNewerNames) {
  const c10::InferenceMode no_autograd;
  const auto stored = Checkpoint::open(kEncoder, "model");
  const auto model = load_encoder(stored);
  std::map<std::string, Tensor> renamed;
  for (const auto& [name, tensor] : tensors_of(stored)) {
    const bool is_text = name.starts_with("model.");
    renamed["model." + (is_text ? "language_model." + name.substr(6) : name)] = tensor;
  }
  ASSERT_TRUE(stored.find("model.layers.0.self_attn.q_proj.bias"));
  renamed["lm_head.weight"] = renamed["model.lm_head.weight"];
  renamed.erase("model.lm_head.weight");
  const auto picture = at::linspace(-1, 1, 3 * 56 * 84).view({3, 56, 84});
  const std::vector<std::int64_t> ids = {5, 7, model.config().image_token, 9};
  const auto states = model(ids, model.encode({picture}));
  EXPECT_EQ(states.sizes(), at::IntArrayRef({1, 3 + 2 * 3, 24}));
  const auto newer = load_encoder(checkpoint_of(renamed));
  EXPECT_TRUE(at::equal(newer(ids, newer.encode({picture})), states));
  EXPECT_THAT(message_of([&] { model(ids, {}); }), HasSubstr("marks the place of 1 picture"));
}

// Without pictures the three axes are one: a language model that reads the same states.
TEST(Qwen25VlFiles, HoldALanguageModelThatNeedsNoTower) {
  const c10::InferenceMode no_autograd;
  const auto stored = Checkpoint::open(kEncoder, "model");
  const auto config = encoder_config().text;
  const CausalLm alone(config, {-1},
                       Weights(stored, causal_lm_names(stored, config), {.dtype = at::kFloat}));
  const std::vector<std::int64_t> ids = {5, 7, 11, 9, 300};
  const TextRun all{.begin = 0, .count = 5};
  const auto got = alone(at::tensor(ids).unsqueeze(0), std::span(&all, 1), Pads::kSkipped);
  EXPECT_LT(largest_error(got, load_encoder(stored)(ids, {})), 1e-6);
}

// The expected numbers are those of transformers' vision tower with this config.
TEST(Qwen25VlConfigs, SayHowFastPatchesTurn) {
  const c10::InferenceMode no_autograd;
  const auto stored = Checkpoint::open(kEncoder, "model");
  auto json = read_json(kEncoder / "config.json");
  json["vision_config"]["rope_parameters"] = {{"rope_type", "axial"}, {"rope_theta", 500}};
  const auto config = read_qwen25_vl_config(JsonObject(json, "f"));
  const Weights weights(stored, qwen25_vl_names(stored), {});
  const WindowVisionTower tower(weights / "visual", config.vision);
  const auto seen = tower(at::linspace(-1, 1, 3 * 56 * 84).view({3, 56, 84}));
  const auto expected = at::tensor({0.217511f, 1.619913f, -0.450127f, 0.232507f, -0.996153f});
  EXPECT_LT(largest_error(seen.flatten(0, -2)[-1].narrow(0, 0, 5), expected), 1e-5);
}

// transformers takes the type `default` for axial, and a theta beside `rope_parameters`.
TEST(Qwen25VlConfigs, MayStateTheirAxialRopeInSeveralWays) {
  const auto theta = [](const char* vision) {
    return read_axial_theta(JsonObject(Json::parse(vision), "f"));
  };
  EXPECT_EQ(theta("{}"), 10000);
  EXPECT_EQ(theta(R"({"rope_parameters":null,"rope_theta":7})"), 7);
  EXPECT_EQ(theta(R"({"rope_parameters":{"rope_type":"default","rope_theta":8},"rope_theta":7})"),
            8);
  EXPECT_EQ(theta(R"({"rope_scaling":{"type":"axial"},"rope_parameters":{"rope_theta":8}})"),
            10000);
  EXPECT_THAT(message_of([&] { theta(R"({"rope_parameters":{"rope_type":"yarn"}})"); }),
              HasSubstr("'rope_parameters': 'rope_type' should be axial, it is yarn"));
  EXPECT_THAT(message_of([&] { theta(R"({"rope_theta":0})"); }),
              HasSubstr("'rope_theta' should be positive"));
}

// A picture counts with all of its tokens.
TEST(Qwen25VlPrompts, AreRefusedBeyondTheWindow) {
  const c10::InferenceMode no_autograd;
  const auto stored = Checkpoint::open(kEncoder, "model");
  auto json = read_json(kEncoder / "config.json");
  json["text_config"].merge_patch({{"use_sliding_window", true},
                                   {"sliding_window", 9},
                                   {"layer_types", {"sliding_attention"}}});
  const auto config = read_qwen25_vl_config(JsonObject(json, "f"));
  const Qwen25Vl model(config, Weights(stored, qwen25_vl_names(stored), {.dtype = at::kFloat}));
  const auto picture = model.encode({at::zeros({3, 56, 84})});  // 2 x 3 tokens
  const auto refusal = [&](std::vector<std::int64_t> ids) {
    ids.push_back(config.image_token);
    return message_of<std::exception>([&] { model(ids, picture); });
  };
  EXPECT_EQ(refusal({5, 7, 9}), "");
  EXPECT_EQ(refusal({5, 7, 9, 11}),
            "a prompt of 10 tokens is longer than the text encoder's sliding window, 9");
}

TEST(Qwen25VlConfigs, AreReadFlatAndNested) {
  auto flat = read_json(kEncoder / "config.json");
  const auto nested = encoder_config();
  auto text = flat["text_config"];
  flat.erase("text_config");
  text["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", {2, 1, 1}}};
  text["rope_theta"] = text["rope_parameters"]["rope_theta"];
  text.erase("rope_parameters");
  text["model_type"] = "qwen2_5_vl";
  flat.merge_patch(text);
  const auto c = read_qwen25_vl_config(JsonObject(flat, "flat"));
  EXPECT_EQ(c.text.hidden, nested.text.hidden);
  EXPECT_EQ(c.text.num_kv_heads, nested.text.num_kv_heads);
  EXPECT_EQ(c.text.theta, nested.text.theta);
  EXPECT_EQ(c.sections, nested.sections);
  EXPECT_EQ(c.text.attention_bias, AttentionBias::kInputs);
  flat["vision_config"]["fullatt_block_indexes"] = {9};
  EXPECT_THAT(message_of([&] { read_qwen25_vl_config(JsonObject(flat, "flat")); }),
              HasSubstr("'fullatt_block_indexes' should be below 'depth'"));
}

// Counted with transformers' classes on the meta device, without the head over the vocabulary.
TEST(Qwen25VlConfigs, OfThePublishedModelHaveItsNumberOfParameters) {
  EXPECT_EQ(parameters_of([](const Weights& w) { (void)Qwen25Vl({}, w); }),
            7'070'619'136 + 676'550'144);
}

}  // namespace braid::qwen25_vl_test
