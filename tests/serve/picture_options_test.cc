// The fields beside pictures, and what files record of them.
#include <gmock/gmock.h>

#include "base/base64.h"
#include "base/file.h"
#include "grey_png.h"
#include "image/picture_file.h"
#include "image/resize.h"
#include "pictures.h"
#include "serve/body/fields.h"
#include "test_server.h"

namespace braid::serve::picture_options_test {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class PictureOptions : public testing::Test {
 protected:
  std::string post(const std::string& path, const nlohmann::json& json) const {
    return server_.ask("POST " + path, "", json.dump());
  }
  PicturesIn pictures_of(const std::string& path, nlohmann::json json) {
    json["prompt"] = "a";
    const auto answer = post(path, json);
    EXPECT_LT(status_of(answer), 300) << answer;
    engine_.wait_until_called(++calls_);
    return engine_.last().pictures;
  }
  void expect_refused(const std::string& path, nlohmann::json json, const std::string& param,
                      const std::string& words) {
    json["prompt"] = "a";
    const auto answer = post(path, json);
    EXPECT_EQ(status_of(answer), 400) << answer;
    EXPECT_EQ(json_of(answer)["error"]["param"], param) << answer;
    EXPECT_THAT(answer, HasSubstr(words));
  }

  FakeEngine engine_;
  Server server_{engine_};
  int calls_ = 0;
  const std::string one_ = base64(grey_png(16, 16, 1)), two_ = base64(grey_png(8, 8, 2));
};

TEST_F(PictureOptions, OfJobsAreTheProgramsFlags) {
  const auto in = pictures_of("/v1/jobs", {{"init", one_},
                                           {"mask", one_},
                                           {"mask_blur", 2.5},
                                           {"padding_crop", 8},
                                           {"reference", {one_, two_}},
                                           {"reference_scale", {0.5, 2}},
                                           {"reference_cache", "off"},
                                           {"control", {one_, two_}},
                                           {"control_scale", 0.75},
                                           {"control_from", {0, 0.25}},
                                           {"control_to", {0.5, 1}},
                                           {"control_mode", {3, 0}}});
  EXPECT_EQ(in.mask_blur, 2.5);
  EXPECT_EQ(in.padding_crop, 8);
  EXPECT_THAT(in.reference_scales, ElementsAre(0.5, 2));
  EXPECT_EQ(in.reference_cache, ReferenceCache::kOff);
  ASSERT_EQ(in.controls.size(), 2u);
  const auto& [picture, scale, from, to, mode] = in.controls[1];
  EXPECT_EQ(picture.width, 8);
  EXPECT_EQ(std::tuple(scale, from, to, mode), std::tuple(0.75, 0.25, 1, 0));
  EXPECT_EQ(in.controls[0].to, 0.5);
  EXPECT_EQ(in.controls[0].mode, 3);
}

// About the initial picture, where a ControlNet fills that in; else about control pictures alone.
TEST_F(PictureOptions, SayHowAPictureIsFilledIn) {
  const nlohmann::json job = {
      {"init", one_}, {"mask", one_}, {"control_scale", 0.5}, {"control_to", 0.75}};
  expect_refused("/v1/jobs", job, "control_scale",
                 "'control_scale' should come with pictures to follow, there are none");
  FakeEngine filling;
  filling.adapt = [](Backend& backend) { backend.info.pictures.net_fills_in = true; };
  Server server(filling);
  const auto ask = [&](nlohmann::json json) {
    json["prompt"] = "a";
    const auto answer = server.ask("POST /v1/jobs", "", json.dump());
    EXPECT_LT(status_of(answer), 300) << answer;
  };
  ask(job);
  filling.wait_until_called(1);
  const auto controls = filling.last().pictures.controls;
  ASSERT_EQ(controls.size(), 1u);
  EXPECT_TRUE(controls[0].picture.rgb.empty());
  EXPECT_EQ(std::tuple(controls[0].scale, controls[0].from, controls[0].to),
            std::tuple(0.5, 0, 0.75));
  ask({{"init", one_}, {"mask", one_}});
  filling.wait_until_called(2);
  EXPECT_TRUE(filling.last().pictures.controls.empty());
  const auto of_server = json_of(server.ask("GET /v1/capabilities"))["pictures_in"];
  EXPECT_EQ(of_server["controlnet_fills_in"], true);
  EXPECT_EQ(of_server["control"], "none");
}

TEST_F(PictureOptions, ComeInForms) {
  const auto part = [](const std::string& name, const std::string& bytes, const char* file = "") {
    return "--xx\r\ncontent-disposition: form-data; name=\"" + name + "\"" + file + "\r\n\r\n" +
           bytes + "\r\n";
  };
  const auto file = grey_png(16, 16, 1);
  const char* const name = "; filename=\"a.png\"";
  const auto answer = server_.ask(
      "POST /v1/images/edits", "content-type: multipart/form-data; boundary=xx\r\n",
      part("prompt", "a") + part("image[]", file, name) + part("image[]", file, name) +
          part("reference_scale[]", "0.5") + part("reference_scale[]", "1.5") + "--xx--\r\n");
  ASSERT_EQ(status_of(answer), 200) << answer;
  EXPECT_THAT(engine_.last().pictures.reference_scales, ElementsAre(0.5, 1.5));
}

TEST_F(PictureOptions, AreRefusedByName) {
  const nlohmann::json controls = {one_, two_};
  expect_refused("/v1/jobs", {{"control", controls}, {"control_scale", {1, 2, 3}}}, "control_scale",
                 "there are 3 for 2");
  expect_refused("/v1/jobs", {{"control", controls}, {"control_mode", 1.5}}, "control_mode",
                 "whole number");
  expect_refused("/v1/jobs", {{"control_to", "1"}}, "control_to", "a number or a list");
  for (const nlohmann::json& scales : {nlohmann::json(0.5), nlohmann::json({1, 2})})
    expect_refused("/v1/jobs", {{"reference_scale", scales}}, "reference_scale",
                   "'reference_scale' should come with pictures to look at, there are none");
  for (const auto* const field : {"control_scale", "control_from", "control_to", "control_mode"})
    expect_refused("/v1/jobs", {{field, 0.5}}, field, "with pictures to follow, there are none");
  expect_refused("/v1/jobs", {{"reference_cache", "on"}}, "reference_cache", "auto, off");
  expect_refused("/v1/jobs", {{"padding_crop", -1}}, "padding_crop", "-1");
}

// This is what Pillow's convert("L") does, which diffusers' pipelines count on.
TEST_F(PictureOptions, TakeMasksAndControlsWithoutTheirTransparency) {
  const auto clear =
      read_file(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures/clear.png");
  const auto want = decode_meaning(clear, "clear.png").rgb;
  ASSERT_NE(want, decode_picture(clear, "clear.png").rgb);
  EXPECT_EQ(pictures_of("/v1/jobs", {{"init", one_}, {"mask", base64(clear)}}).mask->rgb, want);
  EXPECT_EQ(pictures_of("/v1/jobs", {{"control", base64(clear)}}).controls.at(0).picture.rgb, want);
  EXPECT_EQ(pictures_of("/v1/jobs", {{"init", base64(clear)}}).init->rgb,
            decode_picture(clear, "clear.png").rgb);
}

// The web UI's create_binary_mask() takes what is painted, in any colour, of pictures that Pillow
// opens as RGBA; then it resizes masks and pictures to one size.
TEST_F(PictureOptions, OfTheWebUisClientsHaveMasksThatArePainted) {
  const auto mask_of = [&](const std::string& mask) {
    return *pictures_of("/sdapi/v1/img2img", {{"init_images", {base64(grey_png(4, 1, 1))}},
                                              {"mask", base64(mask)},
                                              {"mask_blur", 0}})
                .mask;
  };
  const std::vector<std::uint8_t> black(12), alpha = {0, 128, 129, 255};
  const std::vector<std::uint8_t> painted = {0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255};
  EXPECT_EQ(mask_of(encode_png(4, 1, black, {}, alpha)).rgb, painted);
  EXPECT_EQ(mask_of(encode_png(4, 1, black, {}, std::vector<std::uint8_t>(4, 255))).rgb, black);
  const auto file = [](const std::string& name) {
    return read_file(std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/pictures" / name);
  };
  for (const auto* const name : {"clear_grey.png", "palette.png", "plain.jpg"}) {
    const auto grey = decode_meaning(file(name), name);
    EXPECT_EQ(mask_of(file(name)).rgb, resized(grey, 4, 1, Resampling::kLanczos).rgb) << name;
  }
}

TEST_F(PictureOptions, OfTheWebUisClientsHaveMasksOfAnySize) {
  nlohmann::json wish = {{"init_images", {base64(grey_png(32, 16, 1))}},
                         {"mask", base64(grey_png(8, 24, 200))},
                         {"mask_blur", 3}};
  const auto expect_size = [&](int width, int height) {
    const auto in = pictures_of("/sdapi/v1/img2img", wish);
    EXPECT_EQ(std::pair(in.mask->width, in.mask->height), std::pair(width, height)) << wish;
    EXPECT_EQ(in.mask->rgb.front(), 200);
  };
  expect_size(32, 16);
  wish["inpaint_full_res"] = true;
  expect_size(32, 16);
  wish.update({{"inpaint_full_res", false}, {"resize_mode", 1}, {"width", 48}, {"height", 48}});
  expect_size(48, 48);
  const auto ours = pictures_of("/v1/jobs", {{"init", one_}, {"mask", two_}});
  EXPECT_EQ(ours.mask->width, 8) << "the engine refuses it";
}

// StableDiffusionProcessingImg2Img.init() blurs a mask before it is resized: the checksums are
// those of Pillow's GaussianBlur and of its resize() to the size that is drawn.
TEST_F(PictureOptions, OfTheWebUisClientsBlurAMaskAtItsOwnSize) {
  std::vector<std::uint8_t> rgb;
  for (int i = 0; i < 24 * 20; ++i)
    rgb.insert(rgb.end(), 3, std::uint8_t(std::min(255, 12 * (i % 24))));
  nlohmann::json wish = {{"init_images", {base64(grey_png(48, 32, 1))}},
                         {"mask", base64(encode_png(24, 20, rgb))},
                         {"mask_blur", 3}};
  const auto expect_mask = [&](const nlohmann::json& more, const std::string& digits) {
    auto all = wish;
    all.update(more);
    const auto in = pictures_of("/sdapi/v1/img2img", all);
    EXPECT_EQ(picture_digest(*in.mask), digits) << more;
    EXPECT_EQ(in.mask_blur, 0);
  };
  expect_mask(nlohmann::json::object(), "b6fc7184d9fe610c");
  expect_mask({{"inpaint_full_res", true}}, "b6fc7184d9fe610c");
  expect_mask({{"inpainting_mask_invert", 1}}, "fc27504814fa35e4");
  expect_mask({{"width", 48}, {"height", 32}}, "b6fc7184d9fe610c");
  expect_mask({{"width", 64}, {"height", 32}}, "0bc1161e93d70c33");
}

// The checksums are those of the web UI's resize_image with Pillow.
TEST_F(PictureOptions, OfTheWebUisClientsResizeAsItDoes) {
  const auto resized_as = [&](int width, int height, int to_width, int to_height, int mode) {
    const auto rgb = noise_picture(width, height).rgb;
    const auto in =
        pictures_of("/sdapi/v1/img2img", {{"init_images", {base64(encode_png(width, height, rgb))}},
                                          {"width", to_width},
                                          {"height", to_height},
                                          {"resize_mode", mode}});
    return picture_digest(*in.init);
  };
  EXPECT_EQ(resized_as(50, 30, 32, 48, 1), "bb77175fadd4c8b8");
  EXPECT_EQ(resized_as(50, 30, 32, 48, 2), "5cf2169926ef4a5e");
  EXPECT_EQ(resized_as(30, 50, 64, 32, 1), "1d0a0b221c1179db");
  EXPECT_EQ(resized_as(30, 50, 64, 32, 2), "c9797f567cd0249f");
}

TEST_F(PictureOptions, OfTheWebUisClientsAreOfMasks) {
  const nlohmann::json picture_and_mask = {{"init_images", {one_}}, {"mask", one_}};
  auto wish = picture_and_mask;
  wish.update({{"mask_blur", 4}, {"inpaint_full_res", true}, {"inpaint_full_res_padding", 32}});
  auto in = pictures_of("/sdapi/v1/img2img", wish);
  EXPECT_EQ(in.mask_blur, 4);
  EXPECT_EQ(in.padding_crop, 32);
  wish.update({{"inpaint_full_res", 0}, {"inpainting_mask_invert", 1}, {"inpainting_fill", 1}});
  in = pictures_of("/sdapi/v1/img2img", wish);
  EXPECT_EQ(in.padding_crop, std::nullopt);
  EXPECT_EQ(in.mask->rgb.front(), 254);
  wish.update({{"resize_mode", 1}, {"width", 32}, {"height", 16}, {"mask_blur", 1}});
  in = pictures_of("/sdapi/v1/img2img", wish);
  EXPECT_EQ(in.mask->width, 32) << "resized with the picture, behind its blur";
  EXPECT_EQ(in.mask_blur, 0);
  wish.update({{"mask_blur", nullptr}, {"mask_blur_x", 3}, {"mask_blur_y", 3}, {"resize_mode", 0}});
  EXPECT_EQ(pictures_of("/sdapi/v1/img2img", wish).mask_blur, 3);
  for (const double blur : {-5.0, 1001.0, 1e8, 1e38}) {
    for (const auto* const field : {"mask_blur", "mask_blur_x"})
      for (const nlohmann::json& ours : std::vector<nlohmann::json>{
               nlohmann::json::object(), {{"resize_mode", 1}}, {{"inpainting_fill", 0}}}) {
        auto blurred = wish;
        blurred.update({{field, blur}});
        blurred.update(ours);
        expect_refused("/sdapi/v1/img2img", blurred, field, "between 0 and 1000 pixels");
      }
  }
  wish["mask_blur_y"] = 4;
  expect_refused("/sdapi/v1/img2img", wish, "mask_blur_x", "should be equal");
  for (const int fill : {2, 3}) {
    wish["inpainting_fill"] = fill;
    expect_refused("/sdapi/v1/img2img", wish, "inpainting_fill", "no start from latent noise");
  }
  wish["resize_mode"] = 3;
  expect_refused("/sdapi/v1/img2img", wish, "resize_mode", "3");
}

// A few bytes of a request must not become gigabytes before its sizes are checked.
TEST_F(PictureOptions, DoNotScaleThinPicturesToHugeOnes) {
  for (const auto& thin : {grey_png(1, 4096, 3), grey_png(4096, 1, 3)})
    expect_refused(
        "/sdapi/v1/img2img",
        {{"init_images", {base64(thin)}}, {"resize_mode", 1}, {"width", 512}, {"height", 512}},
        "resize_mode", "would cut nearly all of a picture");
  for (const int mode : {1, 2})
    expect_refused(
        "/sdapi/v1/img2img",
        {{"init_images", {one_}}, {"resize_mode", mode}, {"width", 4096}, {"height", 4096}},
        "width", "4194304 pixels here, this one has 16777216");
}

TEST_F(PictureOptions, OfControlNetsAreNotPassedOver) {
  const auto with = [](const nlohmann::json& unit) {
    return nlohmann::json{{"alwayson_scripts", {{"controlnet", {{"args", {unit}}}}}}};
  };
  expect_refused("/sdapi/v1/txt2img", with({{"module", "canny"}}), "alwayson_scripts", "/v1/jobs");
  pictures_of("/sdapi/v1/txt2img", with({{"enabled", false}}));
}

TEST_F(PictureOptions, AreInTheCapabilities) {
  const auto of_server = json_of(server_.ask("GET /v1/capabilities"))["pictures_in"];
  EXPECT_EQ(of_server["control"], "taken");
  EXPECT_EQ(of_server["controlnet_fills_in"], false);
  EXPECT_EQ(of_server["controlnets"][0], (nlohmann::json{{"name", "union"}, {"modes", 7}}));
  EXPECT_EQ(of_server["reference_scales"], true);
}

TEST_F(PictureOptions, OfFilesAreReadBack) {
  for (const auto* const format : {"png", "jpeg", "webp"}) {
    const auto answer = json_of(post("/v1/images/generations", {{"prompt", "a ★"},
                                                                {"steps", 3},
                                                                {"seed", 9},
                                                                {"size", "32x16"},
                                                                {"output_format", format}}));
    const nlohmann::json image = {{"image", answer["data"][0]["b64_json"]}};
    const auto file = bytes_of_base64(image["image"].get<std::string>(), "");
    EXPECT_THAT(read_picture_text(file, format), Contains(Pair("prompt", "a ★")));
    const auto info = json_of(post("/sdapi/v1/png-info", image));
    EXPECT_EQ(info["items"]["seed"], "9") << format;
    EXPECT_EQ(info["info"], "a ★\nSteps: 3, Seed: 9") << format;
  }
}

}  // namespace braid::serve::picture_options_test
