// JoyAI-Image-Edit and Edit-Plus as a whole, against diffusers; their files and sizes. Parts are
// tested in tests/models/joy_test.cc, layouts in joy_layouts_test.cc.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "edit_json.h"
#include "joy_model.h"
#include "message_of.h"
#include "pictures.h"
#include "pipeline/conversion/convert.h"
#include "pipeline/families/joy/sizes.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/part_tensors.h"
#include "pipeline/request/settings.h"
#include "pipeline/sampling/noise.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::joy_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class JoyFixture {
 public:
  explicit JoyFixture(const char* name)
      : dump_(Checkpoint::open_file(kJoy / (std::string(name) + ".safetensors"))) {}
  Tensor operator[](const std::string& name) const { return dump_.find(name)->view(); }

  void expect_equal(const Generated& drawn) const {
    const auto& [pictures, facts] = drawn;
    const auto& got = facts.recording;
    // Without vector instructions the last bit of LibTorch's draws differs.
    const double bit = at::get_cpu_capability().starts_with("AVX") ? 0 : 1e-6;
    EXPECT_LE(largest_difference(got.at("latents_initial"), (*this)["latents_initial"]), bit);
    for (const auto* name : {"sigmas", "timesteps"})
      EXPECT_TRUE(at::equal(got.at(name), (*this)[name])) << name;
    EXPECT_LT(largest_difference(got.at("prompt_embeds"), (*this)["prompt_embeds"]), 1e-5);
    EXPECT_LT(largest_difference(got.at("velocity_first"), (*this)["velocity_first"]), 1e-4);
    EXPECT_LT(largest_difference(got.at("latents_final"), (*this)["latents_final"]), 1e-4);
    ASSERT_EQ(pictures.size(), 1u);
    const auto& p = pictures.front();
    const auto image = at::tensor(p.rgb, at::kByte).view({1, p.height, p.width, 3});
    const auto some = image.slice(1, 0, {}, 16).slice(2, 0, {}, 16);
    ASSERT_EQ(some.sizes(), (*this)["image"].sizes());
    const auto error = (some.to(at::kInt) - (*this)["image"].to(at::kInt)).abs();
    EXPECT_LE((error > 1).to(at::kFloat).mean().item<double>(), 0.001);
  }

 private:
  Checkpoint dump_;
};

// The negative prompt reuses what was seen of the pictures for the first prompt.
TEST(JoyText, LooksAtThePicturesOfARequestOnce) {
  const auto files = find_model(joy_with()).files;
  const auto family = open_family(files);
  const auto weights_of = [&](const Part& part) {
    return Weights(tensors_of_part(part, files), {.dtype = at::kFloat});
  };
  const auto text = family->load_text(files.folder, at::kCPU, weights_of, {});
  const auto picture = at::linspace(-1, 1, 3 * 256 * 320).view({1, 3, 256, 320}).clone();
  Prompt prompt{.text = "a star", .second = {}, .pictures_13HW = {picture}};
  const auto encoded = [&] { return text->encode(prompt, kLongestTextTokens, {}).text_BTC; };
  const auto alone = encoded();
  prompt.seen = std::make_shared<std::any>();
  EXPECT_TRUE(at::equal(encoded(), alone));
  picture.zero_();
  EXPECT_TRUE(at::equal(encoded(), alone)) << "it looked again";
  prompt.seen = std::make_shared<std::any>();
  EXPECT_FALSE(at::equal(encoded(), alone));
}

// The system turn is no part of the prompt's tokens.
TEST(JoyText, WarnsOfAsManyTokensAsCountersPromise) {
  const TemporaryFolder folder;
  const auto model = folder / "model";
  fs::copy(kJoy / "model", model, fs::copy_options::recursive);
  edit_json(model / "model_index.json", [](Json& index) { index["text_token_max_length"] = 16; });
  const auto files = find_model(joy_with({}, {}, model)).files;
  const auto family = open_family(files);
  const auto weights_of = [&](const Part& part) {
    return Weights(tensors_of_part(part, files), {.dtype = at::kFloat});
  };
  Prompt prompt{.text = "a star", .second = {}};
  for (int i = 0; i < 5; ++i) prompt.text += " on a red circle";
  std::vector<std::string> warnings;
  (void)family->load_text(files.folder, at::kCPU, weights_of, {})
      ->encode(prompt, kLongestTextTokens,
               [&](const std::string& one) { warnings.push_back(one); });
  EXPECT_THAT(warnings, testing::ElementsAre(HasSubstr("longer than the 16 tokens that")));
  const PromptCounter counter(family->prompt_readers(), files.folder);
  EXPECT_EQ(counter.count(prompt.text, "", kLongestTextTokens).front().limit, 16);
}

// Merged by hand: W + scale * up * down, compared with the LoRA beside the weights.
TEST(JoyAdapters, AreWhatMergedWeightsAre) {
  const TemporaryFolder folder;
  const auto model = folder / "merged", lora = folder / "lora.safetensors";
  fs::copy(kJoy / "model", model, fs::copy_options::recursive);
  const auto path = model / "transformer/diffusion_pytorch_model.safetensors";
  std::map<std::string, Tensor> merged, factors;
  const auto stored = Checkpoint::open_file(path);
  for (const auto& [name, tensor] : stored.tensors()) merged[name] = tensor.view().to(at::kFloat);
  for (const std::string layer :
       {"double_blocks.0.attn.img_attn_qkv", "double_blocks.1.txt_mlp.net.2", "proj_out"}) {
    auto& weight = merged.at(layer + ".weight");
    const auto down = at::randn({2, weight.size(1)}), up = at::randn({weight.size(0), 2});
    factors["transformer." + layer + ".lora_A.weight"] = down;
    factors["transformer." + layer + ".lora_B.weight"] = up;
    weight = weight + 0.1 * at::matmul(up, down);
  }
  write_file(path, write_safetensors(merged));
  write_file(lora, write_safetensors(factors));
  auto adapted = joy_with();
  adapted.adapters = {{.file = lora, .scale = 0.1}};
  const auto velocity = [](const PipelineOptions& options) {
    auto request = joy_request();
    request.pictures = {};  // encoding a megapixel takes longest
    request.steps = 1;
    return recorded_latents(options, request).at("velocity_first");
  };
  const auto got = velocity(adapted);
  EXPECT_LT(largest_difference(got, velocity(joy_with({}, {}, model))), 1e-5);
  EXPECT_GT(largest_difference(got, velocity(joy_with())), 0.01);
}

TEST(JoyParity, EditEqualsTheReference) { JoyFixture("edit").expect_equal(joy_drawn_plainly()); }

TEST(SlowJoyParity, PlusEqualsTheReference) {
  const TemporaryFolder folder;
  const auto drawn = joy_drawn(joy_with({}, {}, plus_in(folder.path())), plus_request());
  JoyFixture("plus").expect_equal(drawn);
}

TEST(JoyParity, GuidanceKeepsTheLengthOfEachLatent) {
  for (const auto* name : {"edit", "plus"}) {
    const JoyFixture want(name);
    const auto positive = want["velocity_first"].slice(1, 0, {}, 5);
    const TrueGuidance guidance{.scale = 4, .kept_channels = 16};
    const auto got = guide({positive, want["velocity_first_negative"]}, guidance, 0);
    EXPECT_LT(largest_difference(got, want["velocity_first_guided"]), 1e-5) << name;
  }
}

// The picture's own generator continues after the noise.
TEST(JoyParity, ASampleOfTheReferenceIsDrawnBehindTheNoise) {
  const JoyFixture want("edit");
  const auto cut = joy_cover(joy_reference(0), {.width = 1152, .height = 832});
  const auto pixels = at::tensor(cut.rgb, at::kByte).view({1, 832, 1152, 3}).permute({0, 3, 1, 2});
  const auto files = find_model(joy_with()).files;
  const auto family = open_family(files);
  const auto stored = files.open("vae");
  const auto& part = family->part(Part::Role::kDecoder);
  const Vae vae(family->description().vae, Weights(stored, part.names(stored), {}));
  const auto moments = vae.encode(pixels.to(at::kFloat) / 127.5 - 1, Tiles::kNever);
  auto generator = generator_of(5);
  (void)at::randn({1, 16, 26, 36}, generator, at::kFloat);
  const auto drawn = at::randn({1, 16, 26, 36}, generator, at::kFloat);
  const auto latents = vae.from_encoder(moments.mean + (0.5 * moments.logvar).exp() * drawn);
  const auto some = latents.slice(1, 0, {}, 5).unsqueeze(1);
  EXPECT_LT(largest_difference(some, want["reference_latents"]), 1e-5);
}

// The picture that covers the size would have 3 * 10^9 columns, or rows.
TEST(JoySizes, CoverWithANarrowPicture) {
  const PictureSize wide{.width = 2048, .height = 512}, high{.width = 512, .height = 2048};
  for (const auto& [width, height, size] :
       {std::tuple(6'000'000, 1, wide), std::tuple(1, 6'000'000, high)}) {
    const auto line = grey_picture(width, height, 90);
    EXPECT_EQ(joy_cover(line, size).rgb, std::vector<std::uint8_t>(3 * 2048 * 512, 90));
  }
}

TEST(SlowJoyParity, EachPictureIsThatOfItsSeedAlone) {
  auto request = joy_request();
  request.steps = 1;
  request.num_images = request.batch_size = 2;
  const auto both = recorded_latents(joy_with(), request).at("velocity_first");
  request.num_images = 1;
  ++request.seed;
  const auto second = recorded_latents(joy_with(), request).at("velocity_first");
  EXPECT_LT(largest_difference(both.narrow(0, 1, 1), second), 1e-5);
  EXPECT_GT(largest_difference(both.narrow(0, 0, 1), second), 0.1);
}

TEST(JoySizes, AreTheReferences) {
  for (const auto& row : read_json(kJoy / "manifest.json")["sizes"]) {
    const auto size = joy_size({.width = row[0], .height = row[1]});
    EXPECT_EQ(size.width, row[2].get<int>()) << row;
    EXPECT_EQ(size.height, row[3].get<int>()) << row;
  }
}

TEST(JoySizes, AreToldOfWhereTheyWereAskedFor) {
  const auto limits = open_family(find_model(joy_with()).files)->description().limits;
  std::vector<std::string> told;
  const auto settled = [&](Request request) {
    told.clear();
    return settle(request, limits, [&](const std::string& warning) { told.push_back(warning); });
  };
  auto request = joy_request();
  auto settings = settled(request);  // the reference's, nearest in shape
  EXPECT_EQ(settings.width, 1152);
  EXPECT_EQ(settings.height, 832);
  EXPECT_TRUE(told.empty());
  request.width = 800;
  request.height = 800;
  settings = settled(request);
  EXPECT_EQ(settings.width, 1024);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told.front(), HasSubstr("the size 800x800 becomes 1024x1024, the closest shape"));
  request.pictures.references.push_back(joy_reference(1));
  EXPECT_THROW(settled(request), InputError);
  request.pictures = {.init = joy_reference(0)};
  EXPECT_THROW(settled(request), InputError);
}

class JoyFiles : public testing::Test {
 protected:
  fs::path copy() const {
    fs::copy(kJoy / "model", folder_ / "copy", fs::copy_options::recursive);
    return folder_ / "copy";
  }
  static std::string refusal(const fs::path& model) {
    return message_of([&] { (void)Engine({.model = model}, {}); });
  }

  const TemporaryFolder folder_;
};

class SlowJoyFiles : public JoyFiles {};

TEST_F(SlowJoyFiles, AreConvertedToTheWeightsThatQuantizationHas) {
  const Memory int8{.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8};
  const auto request = joy_request();
  const auto quantized = recorded_latents(joy_with({}, int8), request).at("latents_final");
  const auto out = folder_ / "int8";
  convert({.model = kJoy / "model", .out = out, .dtype = Dtype::kFloat32, .memory = int8});
  const auto converted = recorded_latents(joy_with({}, {}, out), request).at("latents_final");
  EXPECT_TRUE(at::equal(converted, quantized));
  const auto& exact = joy_drawn_plainly().facts.recording.at("latents_final");
  EXPECT_GT(largest_difference(quantized, exact), 1e-5);
}

TEST_F(JoyFiles, AreRefusedWhereTheyDoNotFit) {
  const auto model = copy();
  const auto tried = [&](const char* file, const char* key, const Json& value) {
    const auto before = read_file(model / file);
    edit_json(model / file, [&](Json& json) { json[key] = value; });
    const auto sentence = refusal(model);
    write_file(model / file, before);
    return sentence;
  };
  const auto* const transformer = "transformer/config.json";
  EXPECT_EQ(refusal(model), "");
  EXPECT_THAT(tried(transformer, "text_dim", 33), HasSubstr("makes 24"));
  EXPECT_THAT(tried(transformer, "patch_size", {1, 1, 1}), HasSubstr("should be [1, 2, 2]"));
  EXPECT_THAT(tried(transformer, "rope_type", "none"), HasSubstr("should be rope or mrope"));
  EXPECT_THAT(tried(transformer, "rope_dim_list", {4, 6, 8}), HasSubstr("it sums to 18"));
  EXPECT_THAT(tried("vae/config.json", "_class_name", "AutoencoderKL"),
              HasSubstr("needs an AutoencoderKLWan"));
  EXPECT_THAT(tried("text_encoder/config.json", "model_type", "qwen3"),
              HasSubstr("should be qwen3_vl, it is 'qwen3'"));
  EXPECT_THAT(tried("scheduler/scheduler_config.json", "use_dynamic_shifting", true),
              HasSubstr("should be false"));
  const auto* const processor = "processor/preprocessor_config.json";
  EXPECT_THAT(tried(processor, "patch_size", 14), HasSubstr("patch_size"));
  EXPECT_THAT(tried(processor, "do_normalize", false), HasSubstr("'do_normalize' should be true"));
  EXPECT_THAT(tried(processor, "do_rescale", nullptr), HasSubstr("'do_rescale' should be true"));
  EXPECT_THAT(tried(processor, "rescale_factor", 0.5), HasSubstr("should be 1/255, it is 0.5"));
  EXPECT_THAT(tried(processor, "resample", 1), HasSubstr("'resample'"));
  EXPECT_THAT(tried(processor, "size", {{"shortest_edge", 1}}), HasSubstr("longest_edge"));
}

TEST_F(JoyFiles, NeedATokenizerWithPlacesForPictures) {
  const auto model = copy();
  const auto file = model / "processor/tokenizer.json";
  auto text = read_file(file);
  const std::string mark = "<|image_pad|>";
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark))
    text.replace(at, mark.size(), "<|image_bad|>");
  write_file(file, text);
  EXPECT_THAT(refusal(model), HasSubstr("the tokenizer has no token <|image_pad|>"));
}

TEST(JoyPrompts, ThatMarkMorePlacesThanThereArePicturesAreRefused) {
  const Request request{.prompts = {"look at <|image_pad|>"}, .steps = 1};
  EXPECT_THROW(joy_drawn(joy_with(), request), InputError);
}

// Without a picture the reference does not ask its processor, which refuses such a prompt.
TEST(SlowJoyPrompts, ThatMarkAVideoOrMorePicturesAreRefusedBesideAPicture) {
  Request request{.prompts = {"look at <|video_pad|>"}, .steps = 1};
  request.pictures.references = {joy_reference(0)};
  EXPECT_THAT(message_of([&] { joy_drawn(joy_with(), request); }),
              HasSubstr("marks the place of a video, <|video_pad|>"));
  request.prompts = {"<image>\nswap"};
  EXPECT_THAT(message_of([&] { joy_drawn(joy_with(), request); }),
              HasSubstr("the prompt marks the place of a picture, <image>"));
  request.pictures.references.clear();
  EXPECT_EQ(message_of([&] { joy_drawn(joy_with(), request); }), "");
}

}  // namespace braid::joy_test
