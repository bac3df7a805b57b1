// Prompts and pictures that earlier requests have encoded: the same bytes without encoding again.
#include "pipeline/loaded/encoded_cache.h"

#include <ATen/ATen.h>

#include "base/file.h"
#include "pipeline/picture_requests.h"
#include "temporary_folder.h"
#include "weights/files/checkpoint.h"
#include "weights/files/safetensors_writer.h"

namespace braid::encoded_cache_test {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";
const std::filesystem::path kFixtures =
    std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";

EncodedResult of_floats(std::int64_t count) { return {.tensors = {at::zeros({count})}}; }

TEST(EncodedCache, DropsWhatWasNotAskedForLongest) {
  EncodedCache cache(4 * 100 + 3);  // with keys of one byte
  cache.keep({.what = "a"}, of_floats(40));
  cache.keep({.what = "b"}, of_floats(40));
  EXPECT_NE(cache.find({.what = "a"}), nullptr);
  cache.keep({.what = "c"}, of_floats(40));
  EXPECT_EQ(cache.find({.what = "b"}), nullptr);
  EXPECT_NE(cache.find({.what = "a"}), nullptr);
  EXPECT_NE(cache.find({.what = "c"}), nullptr);
  EXPECT_EQ(cache.use().bytes, 2 * 161);
  cache.keep({.what = "d"}, of_floats(101));
  EXPECT_EQ(cache.find({.what = "d"}), nullptr) << "larger than all that may be kept";
  EXPECT_NE(cache.find({.what = "a"}), nullptr);
}

TEST(EncodedCache, KeepsACopy) {
  EncodedCache cache(1000);
  const EncodedResult made{.tensors = {at::ones({3}), {}}, .warnings = {"cut"}};
  cache.keep({.what = "a"}, made);
  made.tensors[0].fill_(7);
  const auto* const found = cache.find({.what = "a"});
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(at::equal(found->tensors[0], at::ones({3})));
  EXPECT_FALSE(found->tensors[1].defined());
  EXPECT_THAT(found->warnings, ElementsAre("cut"));
}

TEST(EncodedCache, TellsApartWhateverChangesAResult) {
  const auto key = [](const Prompt& prompt, int length = 9) {
    return key_of_prompt(prompt, length, {});
  };
  EXPECT_EQ(key({.text = "a", .second = "b"}), key({.text = "a", .second = "b"}));
  EXPECT_FALSE(key({.text = "ab", .second = ""}) == key({.text = "a", .second = "b"}));
  EXPECT_FALSE(key({.text = "a", .second = ""}) == key({.text = "a", .second = ""}, 8));
  const auto picture = at::rand({1, 3, 4, 6});
  const auto with = [&](std::vector<Tensor> pictures) {
    return key({.text = "a", .second = "", .pictures_13HW = std::move(pictures)});
  };
  EXPECT_EQ(with({picture}), with({picture.clone()}));
  auto other = picture.clone();
  other[0][2][3][5] += 1e-6;
  EXPECT_FALSE(with({picture}) == with({other}));
  EXPECT_FALSE(with({picture}) == with({picture.view({1, 3, 6, 4})}));
  EXPECT_FALSE(with({picture, other}) == with({other, picture}));
  EXPECT_FALSE(key_of_picture(picture, "means 0") == key_of_picture(picture, "moments 0"));
}

// ---- in an engine

PipelineOptions options_with(const Layout& layout = {}, std::int64_t bytes = 1 << 20) {
  return {.model = kModel, .dtype = Dtype::kFloat32, .layout = layout, .condition_cache = bytes};
}

Request request_of(std::uint64_t seed) {
  return {.prompts = {"a red circle", "a blue star"},
          .negative_prompt = "blurry",
          .true_cfg = 2,
          .width = 64,
          .height = 48,
          .steps = 2,
          .max_sequence_length = 21,
          .seed = seed};
}

using Bytes = std::vector<std::vector<std::uint8_t>>;
Bytes drawn(const Engine& engine, const Request& request, const Hooks& hooks = {}) {
  Bytes all;
  for (auto& picture : engine.generate(request, hooks).pictures)
    all.push_back(std::move(picture.rgb));
  return all;
}

EncodedUse used(const Engine& engine, const Request& request) {
  return engine.generate(request, {}).facts.encoded;
}

class LayoutsWithKeptPrompts : public testing::TestWithParam<Layout> {};

TEST_P(LayoutsWithKeptPrompts, DrawTheSameBytesFromWhatIsKnown) {
  const Engine cached(options_with(GetParam()), {}), plain(options_with(GetParam(), 0), {});
  EXPECT_EQ(used(cached, request_of(1)).made, 3);
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(drawn(cached, request_of(5)), drawn(plain, request_of(5)));
  const auto use = used(cached, request_of(5));
  EXPECT_EQ(use.made, 3);
  EXPECT_EQ(use.found, 9);
  EXPECT_EQ(used(plain, request_of(5)).bytes, 0);
  auto other = request_of(5);
  other.prompts[1] = "a green square";
  EXPECT_EQ(drawn(cached, other), drawn(plain, other));
  EXPECT_EQ(used(cached, other).made, 4);
}

const auto kNameOf = [](const auto& info) {
  const auto& l = info.param;
  return l.text == TextRanks::kShared ? std::string("TpShared")
         : l.tp > 1                   ? "Tp"
         : l.dp > 1                   ? "Dp"
         : l.pp > 1                   ? "LayerSplit"
                                      : "One";
};
INSTANTIATE_TEST_SUITE_P(Slow, LayoutsWithKeptPrompts,
                         testing::Values(Layout{}, Layout{.tp = 2},
                                         Layout{.tp = 2, .text = TextRanks::kShared},
                                         Layout{.pp = 2}, Layout{.dp = 2}),
                         kNameOf);

TEST(SlowEncodedCache, RepeatsTheWarnings) {
  const Engine engine(options_with(), {});
  auto request = request_of(1);
  request.max_sequence_length = 4;
  std::vector<std::string> first, second;
  (void)drawn(engine, request, {.warning = [&](const std::string& w) { first.push_back(w); }});
  (void)drawn(engine, request, {.warning = [&](const std::string& w) { second.push_back(w); }});
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(second, first);
}

// Some of FLUX.1's LoRAs change CLIP; others leave the prompts as they are.
TEST(SlowEncodedCache, KnowsWhichAdaptersChangeATextEncoder) {
  const TemporaryFolder folder;
  const auto text_lora = folder / "text.safetensors";
  const std::string layer = "encoder.layers.0.self_attn.k_proj",
                    module = "text_encoder.text_model." + layer;
  const auto checkpoint = Checkpoint::open(kFixtures / "basic/model/text_encoder", "model");
  const auto width = checkpoint.find(layer + ".weight")->view().size(0);
  write_file(text_lora, write_safetensors({{module + ".lora_A.weight", at::ones({2, width})},
                                           {module + ".lora_B.weight", at::ones({width, 2})}}));
  PipelineOptions options = options_with();
  options.model = kFixtures / "basic/model";
  options.adapter_mode = AdapterMode::kUnmerged;
  const Engine engine(options, {});
  auto request = request_of(1);
  const auto made = used(engine, request).made;
  request.adapters = {{{.file = kFixtures / "adapters/flux/peft.safetensors", .scale = 1}}};
  EXPECT_EQ(used(engine, request).made, made);
  request.adapters = {{{.file = text_lora}}};
  const auto adapted = drawn(engine, request);
  EXPECT_EQ(used(engine, request).made, 2 * made);
  EXPECT_EQ(drawn(engine, request), adapted);
  EXPECT_EQ(used(engine, request).made, 2 * made);
  request.adapters->front().scale = 0.5;
  EXPECT_NE(drawn(engine, request), adapted);
  EXPECT_EQ(used(engine, request).made, 3 * made);
}

// A reference's latents and its prompt's.
TEST(EncodedCache, KnowsReferencesAgain) {
  PipelineOptions options = options_with();
  options.model = kFixtures / "klein/model";
  const Engine cached(options, {});
  options.condition_cache = 0;
  const Engine plain(options, {});
  Request request{.prompts = {"a red circle"},
                  .width = 64,
                  .height = 48,
                  .steps = 2,
                  .max_sequence_length = 21,
                  .pictures = {.references = {waves(80, 64), waves(64, 80)}}};
  EXPECT_EQ(used(cached, request).made, 3);
  request.seed = 9;
  EXPECT_EQ(drawn(cached, request), drawn(plain, request));
  EXPECT_EQ(used(cached, request).made, 3);
  request.pictures.references[1] = half(64, 80);
  EXPECT_EQ(drawn(cached, request), drawn(plain, request));
  // The other picture, and the prompt, whose encoder may look at all of them.
  EXPECT_EQ(used(cached, request).made, 5);
}

}  // namespace braid::encoded_cache_test
