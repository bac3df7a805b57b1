// Pictures that exist, as clients of the web UI send them: their text, and other sizes of them.
#include <gmock/gmock.h>

#include "image/exif.h"
#include "image/lossy/lossy_encode.h"
#include "image/make_png.h"
#include "image/resize.h"
#include "wait_until.h"
#include "web_ui_client.h"

namespace braid::serve::web_ui_extras_test {

using namespace std::literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class WebUiExtras : public WebUi {};

// The web UI makes sides that are multiples of 8; the checksums are those of Pillow 13.
TEST_F(WebUiExtras, ScalesPictures) {
  json wish = {{"image", file_of(noise_picture(48, 32))}, {"upscaling_resize", 2}};
  const auto scaled = [&](const char* upscaler) {
    wish["upscaler_1"] = upscaler;
    const auto answer = post("extra-single-image", wish);
    EXPECT_EQ(status_of(answer), 200) << answer;
    EXPECT_TRUE(json_of(answer).contains("html_info"));
    return made(json_of(answer)["image"]);
  };
  EXPECT_EQ(picture_digest(scaled("None")), picture_digest(noise_picture(48, 32)));
  EXPECT_EQ(picture_digest(scaled("Lanczos")), "72babfc5aec22d6d");
  EXPECT_EQ(picture_digest(scaled("Nearest")), "ad54cc6aa8d0863e");
  wish.update({{"resize_mode", 1}, {"upscaling_resize_w", 96}, {"upscaling_resize_h", 40}});
  EXPECT_EQ(scaled("Lanczos").height, 40) << "cropped";
  wish["upscaling_crop"] = false;
  EXPECT_EQ(scaled("Lanczos").height, 64);
  const auto batch = json_of(
      post("extra-batch-images",
           {{"upscaler_1", "Nearest"}, {"imageList", {{{"data", wish["image"]}, {"name", "a"}}}}}));
  EXPECT_EQ(made(batch["images"][0]).width, 96);
  EXPECT_EQ(get("upscalers")[1]["name"], "Lanczos");
}

TEST_F(WebUiExtras, MakesTheSizeThatIsAskedFor) {
  json wish = {
      {"image", file_of(noise_picture(64, 64))}, {"upscaler_1", "Lanczos"}, {"resize_mode", 1}};
  const auto made_for = [&](int width, int height) {
    wish.update({{"upscaling_resize_w", width}, {"upscaling_resize_h", height}});
    return made(json_of(post("extra-single-image", wish))["image"]);
  };
  for (const auto& [width, height] :
       {std::pair(85, 48), {48, 85}, {1, 1}, {7, 63}, {64, 64}, {101, 101}}) {
    const auto picture = made_for(width, height);
    EXPECT_EQ(std::pair(picture.width, picture.height), std::pair(width, height));
  }
  const auto whole = resized(noise_picture(64, 64), 85, 80, Resampling::kLanczos);
  EXPECT_EQ(made_for(85, 48).rgb, cropped(whole, 0, 16, 85, 48).rgb)
      << "it covers, from the middle";
  wish["upscaling_crop"] = false;
  const auto uncropped = made_for(85, 48);
  EXPECT_EQ(std::pair(uncropped.width, uncropped.height), std::pair(80, 80)) << "multiples of 8";
}

TEST_F(WebUiExtras, FindsTheNearestPixelAsPillowDoes) {
  const json wish = {{"image", file_of(noise_picture(64, 64))},
                     {"upscaler_1", "Nearest"},
                     {"upscaling_resize", 1.625}};
  EXPECT_EQ(made(json_of(post("extra-single-image", wish))["image"]).rgb,
            resized_to_nearest(noise_picture(64, 64), 104, 104).rgb);
}

// A picture of noise with these chunks before its pixels.
std::string with_chunks(const std::string& chunks) {
  constexpr std::size_t kHead = 8 + 25;  // the signature and IHDR
  const auto png = encode_png(8, 8, std::vector<std::uint8_t>(8 * 8 * 3, 9));
  return png.substr(0, kHead) + chunks + png.substr(kHead);
}

TEST_F(WebUiExtras, KeepsWhatCanBeReadAndWrittenOfATextAndRefusesNoPictureForIt) {
  const auto good = chunk("tEXt", "parameters\0a fox"s);
  for (const auto& bad : {chunk("tEXt", "workflow\0"s + std::string(2'000'000, 'x')),
                          chunk("zTXt", "workflow\0\0"s + packed(std::string(2'000'000, 'x'))),
                          chunk("tEXt", "no end of the key"), chunk("zTXt", "key\0\0garbage"s),
                          chunk("iTXt", "key\0\0\0\0\0\xff"s), chunk("tEXt", "key\0a\0b"s),
                          chunk("tEXt", std::string(90, 'k') + "\0a"s)}) {
    const json wish = {{"image", base64(with_chunks(bad + good))}, {"upscaler_1", "Lanczos"}};
    const auto answer = post("extra-single-image", wish);
    ASSERT_EQ(status_of(answer), 200) << answer << bad.substr(0, 40);
    const auto file = bytes_of_base64(json_of(answer)["image"].get<std::string>(), "");
    EXPECT_THAT(read_png_text(file, ""), ElementsAre(Pair("parameters", "a fox")));
  }
}

TEST_F(WebUiExtras, KeepsWhatAPngCanHoldOfAJpegsComment) {
  const auto exif = exif_of_comment("a fox\nSteps: 20, \u91c7\u6837\u5668: Euler, Seed: 42");
  const auto jpeg = encode_jpeg(8, 8, std::vector<std::uint8_t>(8 * 8 * 3, 9), 90, exif);
  const auto answer = post("extra-single-image", {{"image", base64(jpeg)}});
  ASSERT_EQ(status_of(answer), 200) << answer;
  const auto file = bytes_of_base64(json_of(answer)["image"].get<std::string>(), "");
  EXPECT_THAT(read_png_text(file, ""),
              ElementsAre(Pair("prompt", "a fox"), Pair("steps", "20"), Pair("seed", "42")));
}

// modules/images.py, read_info_from_image(); its own parameters are translated.
TEST_F(WebUiExtras, ReadsTheTextOfItsOwnPngs) {
  const std::string settings =
      "a cat\nNegative prompt: bad\nSteps: 20, Sampler: Euler a, CFG scale: 7, Seed: 1, "
      "Lora hashes: \"a: b, c: d\", Version: v1.10.1";
  const auto png = encode_png(8, 8, std::vector<std::uint8_t>(8 * 8 * 3, 9),
                              {{"parameters", settings}, {"extras", "foo"}});
  const auto told = json_of(post("png-info", {{"image", base64(png)}}));
  EXPECT_EQ(told["info"], settings);
  EXPECT_EQ(told["items"].dump(), R"({"extras":"foo"})");
  EXPECT_EQ(told["parameters"]["prompt"], "a cat");
  EXPECT_EQ(told["parameters"]["negative_prompt"], "bad");
  EXPECT_EQ(told["parameters"]["seed"], "1");
}

// A file whose header alone is whole: to be refused for its pixels, it has to be within the limit.
TEST(WebUiExtrasLimit, IsTheOneThatTheOperatorGave) {
  FakeEngine engine;
  const auto more = [](ApiContext& context) { context.bounds.max_input_pixels = 1 << 27; };
  const Server server(engine, {}, {}, {}, more);
  const auto file = base64("\x89PNG\r\n\x1a\n" + ihdr(10'000, 7000, 1, 0) +
                           chunk("IDAT", packed("\0")) + chunk("IEND", ""));
  const auto refusal_of = [&](const std::string& path, json wish) {
    wish["prompt"] = "a";
    return server.ask("POST " + path, "", wish.dump());
  };
  const auto small = base64(encode_png(8, 8, std::vector<std::uint8_t>(8 * 8 * 3, 9)));
  for (const auto& answer :
       {server.ask("POST /sdapi/v1/extra-single-image", "", json{{"image", file}}.dump()),
        refusal_of("/v1/jobs", {{"init", file}}), refusal_of("/v1/jobs", {{"control", file}}),
        refusal_of("/v1/jobs", {{"init", small}, {"mask", file}}),
        refusal_of("/v1/images/edits", {{"image", small}, {"mask", file}}),
        refusal_of("/sdapi/v1/img2img", {{"init_images", {small}}, {"mask", file}})}) {
    EXPECT_EQ(status_of(answer), 400) << answer;
    EXPECT_THAT(answer, HasSubstr("cannot hold 10000x7000 pixels"));
  }
}

TEST_F(WebUiExtras, SaysWhatIsNoPictureInBase64) {
  for (const auto& [image, words] : {std::pair("x", "'image' should be base64"),
                                     {"AAAAA", "'image' should be base64"},
                                     {"!", "'image' should be base64"},
                                     {"", "'image' should be a picture in base64, it is empty"}}) {
    const auto answer = post("png-info", {{"image", image}});
    EXPECT_EQ(status_of(answer), 400) << answer;
    EXPECT_EQ(json_of(answer)["error"]["param"], "image");
    EXPECT_THAT(answer, HasSubstr(words)) << image;
  }
}

TEST_F(WebUiExtras, SaysWhichScalingIsNotThere) {
  const auto image = file_of(noise_picture(16, 16));
  for (const auto& [wish, words] : std::vector<std::pair<json, std::string>>{
           {json::object(), "there is no 'image'"},
           {{{"image", "AAAA"}, {"upscaler_1", "Lanczos"}}, "the image"},
           {{{"image", image}, {"upscaler_1", "R-ESRGAN 4x+"}}, "None, Lanczos and Nearest"},
           {{{"image", image}, {"gfpgan_visibility", 1}}, "no face restoration"},
           {{{"image", image}, {"upscaler_1", "Lanczos"}, {"upscaling_resize", 0}}, "above 0"}}) {
    const auto answer = post("extra-single-image", wish);
    EXPECT_EQ(status_of(answer), 400) << answer;
    EXPECT_THAT(answer, HasSubstr(words));
  }
  EXPECT_EQ(
      status_of(post("extra-single-image",
                     {{"image", image}, {"upscaler_1", "Nearest"}, {"upscaling_resize", 1000}})),
      413);
}

// A request may have many pictures, but no more pixels than it may bring, in or out.
TEST_F(WebUiExtras, BoundsThePixelsOfAllPicturesThatItScales) {
  const auto asked = [&](const json& image, int count, double factor) {
    auto list = json::array();
    for (int i = 0; i < count; ++i) list.push_back({{"data", image}, {"name", "a"}});
    return post(
        "extra-batch-images",
        {{"upscaler_1", "Nearest"}, {"upscaling_resize", factor}, {"imageList", std::move(list)}});
  };
  const auto small = file_of(noise_picture(32, 32));
  EXPECT_EQ(status_of(asked(small, 3, 100)), 200) << "3 x 3200 x 3200";
  const auto made = asked(small, 4, 100);
  EXPECT_EQ(status_of(made), 413);
  EXPECT_THAT(made, HasSubstr("the picture would become 3200x3200, at most 33554432 pixels are "
                              "made for all pictures of a request"));
  const auto large = file_of(grey_picture(7000, 5000));
  const auto read = asked(large, 1, 0.01);
  EXPECT_EQ(status_of(read), 413);
  EXPECT_THAT(read, HasSubstr("the image has 7000x5000 pixels, at most 33554432 pixels are read"));
}

// A picture without pixels: its header can be read, and nothing else.
TEST_F(WebUiExtras, CountsThePixelsOfAllPicturesBeforeItReadsOne) {
  const auto file = encode_png(8, 8, noise_picture(8, 8).rgb);
  const auto empty = base64(file.substr(0, 8 + 25) + file.substr(file.size() - 12));
  const json wish = {{"upscaler_1", "Nearest"},
                     {"imageList", {{{"data", empty}}, {{"data", file_of(noise_picture(8, 8))}}}}};
  EXPECT_EQ(status_of(post("extra-batch-images", wish)), 400);
  auto huge = wish;
  huge["upscaling_resize"] = 1000;
  EXPECT_EQ(status_of(post("extra-batch-images", huge)), 413);
  huge["imageList"][0] = wish["imageList"][1];
  huge["imageList"][1]["data"] = base64("no picture");
  huge["upscaling_resize"] = 1;
  const auto unknown = post("extra-batch-images", huge);
  EXPECT_EQ(status_of(unknown), 400);
  EXPECT_EQ(json_of(unknown)["error"]["param"], "image");
  const auto none = json_of(post("extra-batch-images", {{"imageList", json::array()}}));
  EXPECT_EQ(none["images"], json::array());
  for (const json& lacking : {json{{"images", json::array()}}, json{{"imageList", nullptr}}}) {
    const auto refused = post("extra-batch-images", lacking);
    EXPECT_EQ(status_of(refused), 400) << lacking;
    EXPECT_EQ(json_of(refused)["error"]["param"], "imageList");
  }
}

// Sixty small pictures that take long together.
std::string long_batch() {
  const auto small = base64(encode_png(8, 8, std::vector<std::uint8_t>(8 * 8 * 3, 9)));
  const json wish = {{"upscaler_1", "Lanczos"},
                     {"upscaling_resize", 80},
                     {"imageList", json::array_t(60, {{"data", small}, {"name", "a"}})}};
  return Server::request_text("POST /sdapi/v1/extra-batch-images", "", wish.dump());
}

TEST_F(WebUiExtras, ServesOthersBetweenThePicturesOfABatch) {
  RawClient batch(server_.port());
  batch.send(long_batch());
  const json wish = {{"upscaler_1", "Nearest"}, {"image", file_of(noise_picture(8, 8))}};
  EXPECT_EQ(status_of(post("extra-single-image", wish)), 200);
  EXPECT_FALSE(batch.has_more()) << "it waited for the whole batch";
  ASSERT_TRUE(batch.read_until("html_info"));
  EXPECT_EQ(status_of(batch.received()), 200);
}

TEST(WebUiBatch, EndsWithItsClientOrTheServer) {
  std::atomic<int> left = 0;
  const auto log = [&](const RequestLog& request) { left += request.status == 499; };
  FakeEngine engine;
  std::optional<Server> server(std::in_place, engine, Access{}, HttpServerOptions{.log = log});
  const auto seconds_of = [](const auto& work) {
    const auto began = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - began).count();
  };
  RawClient waits(server->port());
  const auto whole = seconds_of([&] {
    waits.send(long_batch());
    ASSERT_TRUE(waits.read_until("html_info"));
  });
  waits.leave();
  EXPECT_TRUE(wait_until([&] { return server->http().num_connections() == 0; }));
  EXPECT_EQ(left, 0);
  const auto abandoned = seconds_of([&] {
    RawClient client(server->port());
    client.send(long_batch());
    client.leave();
    while (left == 0 || server->http().num_connections() > 0) std::this_thread::yield();
  });
  EXPECT_LT(abandoned, whole / 2);
}

}  // namespace braid::serve::web_ui_extras_test
