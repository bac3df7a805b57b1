// Previews resemble the final pictures and change no bit of them; a completed request runs as
// given.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "message_of.h"
#include "pictures.h"
#include "pipeline/engine/engine.h"
#include "pipeline/sampling/latent_colors.h"

namespace braid::previews_test {

const std::filesystem::path kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models" / "demo";

// The correlation of a preview's values with the means of the picture's 8 x 8 pixels.
double likeness(const Preview& preview, const Picture& picture) {
  const auto tensor = [](const auto& p) {
    return at::tensor(at::ArrayRef<std::uint8_t>(p.rgb))
        .view({p.height, p.width, 3})
        .to(at::kFloat);
  };
  const auto small = at::avg_pool2d(tensor(picture).permute({2, 0, 1}).unsqueeze(0), 8);
  const auto both =
      at::stack({small.flatten(), tensor(preview).permute({2, 0, 1}).contiguous().flatten()});
  return at::corrcoef(both)[0][1].item<double>();
}

TEST(LatentColors, AreExactWhereTheDecoderIsLinear) {
  const auto mix = at::randn({3, 4});
  const auto decode = [&](const at::Tensor& latents) {
    const auto colors = at::einsum("cz,bzhw->bchw", {mix, latents}) + 0.25;
    return colors.repeat_interleave(8, 2).repeat_interleave(8, 3);
  };
  const LatentColors colors(4, decode);
  const auto latents = at::randn({2, 4, 3, 5});
  const auto exact = at::avg_pool2d(decode(latents), 8);
  EXPECT_LT((colors(latents) - exact).abs().max().item<double>(), 1e-4);
}

TEST(Previews, LookLikeThePictureAndChangeNoBit) {
  const Engine engine({.model = kModel}, {});
  const Request request{.prompts = {"a red circle on a blue background"}, .steps = 8, .seed = 3};
  const auto alone = engine.generate(request, {}).pictures;
  std::vector<Preview> previews;
  const auto with = engine.generate(
      request, {.preview = [&](const Preview& preview) { previews.push_back(preview); }});
  EXPECT_EQ(with.pictures.front().rgb, alone.front().rgb);
  ASSERT_EQ(previews.size(), 8u);
  EXPECT_EQ(previews.front().width, 16);
  EXPECT_EQ(previews.back().step, 8);
  // 0.97 with diffusers' decoder and latents of this model: the map cannot be exact
  EXPECT_GT(likeness(previews.back(), alone.front()), 0.95);
  EXPECT_GT(likeness(previews[2], alone.front()), 0.8) << "the first steps show it already";
}

TEST(Previews, ComeAtIntervalsThatAreNumbers) {
  const Engine engine({.model = kModel}, {});
  const Request request{.prompts = {"a"}, .width = 32, .height = 32, .steps = 1};
  for (const double interval : {-1.0, std::nan("")})
    EXPECT_THAT(message_of([&] { (void)engine.generate(request, {.preview_interval = interval}); }),
                testing::HasSubstr("preview_interval should be at least 0 seconds"));
  EXPECT_EQ(engine.generate(request, {.preview_interval = 0.5}).pictures.size(), 1u);
}

// Those of the lowest layer, and of a picture with alpha: these models' are nearly clear.
TEST(SlowPreviews, OfTransparentPicturesLieOnWhite) {
  const auto fixtures = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";
  for (const auto* name : {"qwen21", "qwen-image-layered"}) {
    const Engine engine({.model = fixtures / name / "model"}, {});
    Request request{.prompts = {"a star"}, .width = 96, .height = 64, .steps = 2, .seed = 3};
    if (engine.info().layers.most > 0) {
      request.layers = 2;
      request.pictures.references = {grey_picture(96, 64, 128)};
    }
    std::vector<Preview> previews;
    const Hooks hooks{.preview = [&](const Preview& preview) { previews.push_back(preview); }};
    ASSERT_EQ(engine.generate(request, hooks).pictures.front().channels(), 4) << name;
    ASSERT_EQ(previews.size(), 2u) << name;
    const auto& [picture, step, width, height, rgb] = previews.back();
    ASSERT_EQ(rgb.size(), std::size_t(width) * std::size_t(height) * 3) << name;
    const auto values = at::tensor(at::ArrayRef<std::uint8_t>(rgb)).to(at::kFloat);
    EXPECT_GT(values.mean().item<double>(), 200) << name;
  }
}

TEST(Previews, AreOfThePicturesOfTheirRound) {
  const Engine engine({.model = kModel, .layout = {.tp = 2}}, {});
  std::vector<int> numbers;
  engine.generate(
      {.prompts = {"a"}, .width = 32, .height = 32, .steps = 1, .num_images = 3, .batch_size = 2},
      {.preview = [&](const Preview& preview) { numbers.push_back(preview.picture); }});
  EXPECT_EQ(numbers, (std::vector<int>{0, 1, 2}));
}

// Replicas draw pictures of their own, some of them none.
TEST(SlowPreviews, AreOfThePicturesOfAllReplicas) {
  using Seen = std::map<std::pair<int, int>, std::vector<std::uint8_t>>;  // by picture and step
  for (const int num_images : {1, 3, 4}) {
    const auto use_with = [&](const Layout& layout) {
      const Engine engine({.model = kModel, .dtype = Dtype::kFloat32, .layout = layout}, {});
      Seen seen;
      engine.generate({.prompts = {"a"},
                       .width = 32,
                       .height = 32,
                       .steps = 2,
                       .num_images = num_images,
                       .batch_size = 2},
                      {.preview = [&](const Preview& preview) {
                        seen[{preview.picture, preview.step}] = preview.rgb;
                      }});
      return seen;
    };
    const auto seen = use_with({.dp = 2});
    EXPECT_EQ(seen.size(), 2u * std::size_t(num_images));
    EXPECT_EQ(seen, use_with({}));
  }
}

TEST(Previews, ComeNoSoonerThanAsked) {
  const Engine engine({.model = kModel}, {});
  int count = 0;
  engine.generate({.prompts = {"a"}, .width = 32, .height = 32, .steps = 5},
                  {.preview = [&](const Preview&) { ++count; }, .preview_interval = 1000});
  EXPECT_EQ(count, 1);
}

TEST(Complete, SaysAllThatTheRunWillDo) {
  const Engine engine({.model = kModel}, {});
  std::vector<std::string> warnings;
  const Hooks hooks{.warning = [&](const std::string& w) { warnings.push_back(w); }};
  const auto complete = engine.complete({.prompts = {"a"}, .width = 100}, hooks);
  EXPECT_EQ(complete.width, 96);
  EXPECT_EQ(complete.height, 128);
  EXPECT_EQ(complete.steps, 20);
  EXPECT_EQ(complete.guidance, 3.5);
  EXPECT_EQ(complete.max_sequence_length, 64);
  EXPECT_EQ(warnings.size(), 1u);
  engine.complete(complete, hooks);
  EXPECT_EQ(warnings.size(), 1u) << "there is nothing more to say";
  EXPECT_THROW(engine.complete({.prompts = {"a"}, .steps = 0}, {}), InputError);
}

TEST(Complete, RefusesWhatTheRunRefuses) {
  const Engine engine({.model = kModel}, {});
  const auto black = grey_picture(64, 64);
  auto lone = black;  // one pixel to draw anew
  lone.rgb[3 * (64 * 32 + 32)] = 255;
  const PicturesIn blurred{.init = black, .mask = lone, .mask_blur = 20, .padding_crop = 4};
  for (const Request& request :
       {Request{.prompts = {"a"}, .width = 64, .height = 64, .sampling = {.shift = 1e9}},
        Request{.prompts = {"a"}, .adapters = {{{"none.safetensors", 1}}}},
        Request{.prompts = {"a"}, .width = 64, .height = 64, .pictures = blurred}}) {
    const auto refused = message_of([&] { (void)engine.generate(request, {}); });
    EXPECT_NE(refused, "");
    EXPECT_EQ(message_of([&] { (void)engine.complete(request, {}); }), refused);
  }
}

TEST(Complete, SaysHowMuchOfAPictureIsKept) {
  const Engine engine({.model = kModel}, {});
  const auto init = grey_picture(64, 64);
  const auto complete = engine.complete({.prompts = {"a"}, .pictures = {.init = init}}, {});
  EXPECT_TRUE(complete.pictures.strength.has_value());
  EXPECT_FALSE(engine.complete({.prompts = {"a"}}, {}).pictures.strength.has_value());
}

TEST(Complete, LeavesOutWhatIsNotUsed) {
  const Engine engine({.model = kModel}, {});
  const auto unused = engine.complete({.prompts = {"a"}, .negative_prompt = "b"}, {});
  EXPECT_EQ(unused.negative_prompt, std::nullopt);
  const auto used = engine.complete({.prompts = {"a"}, .negative_prompt = "b", .true_cfg = 2}, {});
  EXPECT_EQ(used.negative_prompt, "b");
  EXPECT_EQ(used.true_cfg, 2);
}

TEST(Info, SaysWhatMayBeAsked) {
  const auto info = Engine({.model = kModel}, {}).info();
  EXPECT_EQ(info.width, 128);
  EXPECT_EQ(info.steps, 20);
  EXPECT_EQ(info.size_multiple, 16);
  EXPECT_EQ(info.num_texts, 2);
  EXPECT_EQ(info.guidance_kind, GuidanceKind::kEmbeddedOrTrue);
}

}  // namespace braid::previews_test
