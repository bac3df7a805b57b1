// What clients of AUTOMATIC1111's and Forge's web UI send by default, read, and ask for besides.
#include <gmock/gmock.h>

#include "base/base64.h"
#include "base/sha256.h"
#include "image/picture_file.h"
#include "serve/body/fields.h"
#include "test_server.h"

namespace braid::serve::web_ui_api_test {

using nlohmann::json;
using testing::HasSubstr;

struct Taken {
  std::optional<double> guidance;
  double true_cfg;
  std::optional<std::string> negative;
  bool operator==(const Taken&) const = default;
};

class WebUiScalesTaken : public testing::Test {
 protected:
  void serve(GuidanceKind kind, double guidance = 3.5, double unguided = 1) {
    server_.reset();
    engine_.adapt = [=](Backend& backend) {
      backend.info.guidance_kind = kind;
      backend.info.guidance = guidance;
      backend.unguided = unguided;
      backend.complete = [=, complete = backend.complete](Request request, const Hooks& hooks) {
        if (!request.guidance) request.guidance = guidance;
        return complete(request, hooks);
      };
    };
    server_.emplace(engine_);
  }
  // What the engine gets.
  Taken taken(json wish) {
    wish.update({{"prompt", "a"}, {"width", 16}, {"height", 16}, {"steps", 1}});
    const auto text = server_->ask("POST /sdapi/v1/txt2img", "", wish.dump());
    EXPECT_EQ(status_of(text), 200) << text;
    answer_ = json_of(text);
    const auto request = engine_.last();
    return {request.guidance, request.true_cfg, request.negative_prompt};
  }
  void expect_warning(const std::string& words) const {
    ASSERT_TRUE(answer_.contains("warnings")) << answer_["parameters"];
    EXPECT_THAT(answer_["warnings"].dump(), HasSubstr(words));
  }
  void expect_none() const { EXPECT_FALSE(answer_.contains("warnings")) << answer_["warnings"]; }

  FakeEngine engine_;
  std::optional<Server> server_;
  json answer_;
};

// FLUX.1-dev: distilled to take guidance as a number, with true guidance besides.
TEST_F(WebUiScalesTaken, ByADistilledModelAreItsNumberAndTrueGuidanceWithANegativePrompt) {
  serve(GuidanceKind::kEmbeddedOrTrue);
  EXPECT_EQ(taken({{"cfg_scale", 1}, {"distilled_cfg_scale", 2.5}}), (Taken{2.5, 1, {}}));
  expect_none();
  EXPECT_EQ(answer_["parameters"]["distilled_cfg_scale"], 2.5);
  EXPECT_EQ(answer_["parameters"]["guidance"], 2.5);
  EXPECT_EQ(answer_["parameters"]["cfg_scale"], 1.0);
  EXPECT_EQ(taken({{"cfg_scale", 7}}), (Taken{3.5, 1, {}})) << "the model's own";
  expect_warning("'cfg_scale' 7 is not used");
  EXPECT_EQ(answer_["parameters"]["cfg_scale"], 1.0);
  EXPECT_EQ(taken({{"cfg_scale", 4}, {"distilled_cfg_scale", 3}, {"negative_prompt", "blurry"}}),
            (Taken{3.0, 4, "blurry"}));
  expect_none();
  EXPECT_EQ(answer_["parameters"]["cfg_scale"], 4.0);
  EXPECT_EQ(answer_["parameters"]["negative_prompt"], "blurry");
  EXPECT_EQ(taken({{"cfg_scale", 1}, {"negative_prompt", "blurry"}}), (Taken{3.5, 1, {}}));
  expect_warning("the negative prompt is not used: that takes a 'cfg_scale' above 1");
  EXPECT_EQ(taken({{"cfg_scale", 7}, {"negative_prompt", " \n"}}), (Taken{3.5, 1, {}}));
  EXPECT_EQ(taken({{"negative_prompt", ""}}), (Taken{3.5, 1, {}}));
  expect_none();
}

TEST_F(WebUiScalesTaken, ByAModelWithoutTrueGuidanceAreItsNumberAlone) {
  serve(GuidanceKind::kEmbedded, 30);
  EXPECT_EQ(taken({{"cfg_scale", 7}, {"negative_prompt", "b"}, {"distilled_cfg_scale", 20}}),
            (Taken{20.0, 1, {}}));
  expect_warning("'cfg_scale' 7 is not used: this model has no true guidance");
  expect_warning("the negative prompt is not used: this model has none here");
  EXPECT_EQ(answer_["parameters"]["distilled_cfg_scale"], 20.0);
  serve(GuidanceKind::kNone, 1);
  EXPECT_EQ(taken({{"cfg_scale", 1}}), (Taken{1.0, 1, {}}));
  expect_none();
  taken({{"cfg_scale", 7}, {"distilled_cfg_scale", 3.5}});
  expect_warning("'cfg_scale' 7 is not used");
  expect_warning("'distilled_cfg_scale' 3.5 is not used");
  EXPECT_FALSE(answer_["parameters"].contains("distilled_cfg_scale"));
}

// JoyAI-Image-Edit and klein base; Z-Image's scale counts from the prompt's branch.
TEST_F(WebUiScalesTaken, ByAModelOfTrueGuidanceAreItsScale) {
  serve(GuidanceKind::kTrue, 4);
  EXPECT_EQ(taken({{"cfg_scale", 6}, {"negative_prompt", "b"}}), (Taken{6.0, 1, "b"}));
  EXPECT_EQ(answer_["parameters"]["cfg_scale"], 6.0);
  EXPECT_EQ(taken({{"cfg_scale", 6}}), (Taken{6.0, 1, {}}));
  EXPECT_EQ(taken({{"cfg_scale", 1}}), (Taken{1.0, 1, {}})) << "off";
  EXPECT_EQ(taken({{"cfg_scale", 0}}), (Taken{1.0, 1, {}})) << "off";
  EXPECT_EQ(taken(json::object()), (Taken{4.0, 1, {}})) << "the model's own";
  expect_none();
  serve(GuidanceKind::kTrue, 5, 0);
  EXPECT_EQ(taken({{"cfg_scale", 6}, {"negative_prompt", "b"}}), (Taken{5.0, 1, "b"}));
  EXPECT_EQ(answer_["parameters"]["cfg_scale"], 6.0);
  EXPECT_EQ(taken({{"cfg_scale", 1}}), (Taken{0.0, 1, {}})) << "off";
}

// Z-Image-Turbo: without guidance unless it is asked for with a negative prompt.
TEST_F(WebUiScalesTaken, ByADistilledModelOfTrueGuidanceTakeANegativePrompt) {
  serve(GuidanceKind::kTrue, 0, 0);
  EXPECT_EQ(taken({{"cfg_scale", 7}}), (Taken{0.0, 1, {}}));
  expect_warning("'cfg_scale' 7 is not used");
  EXPECT_EQ(answer_["parameters"]["cfg_scale"], 1.0);
  EXPECT_EQ(taken({{"cfg_scale", 3}, {"negative_prompt", "b"}}), (Taken{2.0, 1, "b"}));
}

class WebUi : public testing::Test {
 protected:
  std::string post(const std::string& path, const json& wish) const {
    return server_.ask("POST /sdapi/v1/" + path, "", wish.dump());
  }
  json get(const std::string& path) const {
    const auto answer = server_.ask("GET /sdapi/v1/" + path);
    EXPECT_EQ(status_of(answer), 200) << answer;
    return json_of(answer);
  }
  static Pixels noise(int width, int height) {
    Pixels picture{.width = width, .height = height, .rgb = {}};
    picture.rgb.resize(std::size_t(width) * std::size_t(height) * 3);
    for (std::uint64_t i = 0; i < picture.rgb.size(); ++i)
      picture.rgb[i] = std::uint8_t((i * i * 31 + i * 7) % 65537 % 256);
    return picture;
  }
  static std::string file_of(const Pixels& picture) {
    return base64(encode_png(picture.width, picture.height, picture.rgb));
  }
  static std::string digits_of(const Pixels& picture) {
    const auto& rgb = picture.rgb;
    return sha256_hex({reinterpret_cast<const char*>(rgb.data()), rgb.size()}).substr(0, 16);
  }
  static Pixels made(const json& image) {
    return decode_picture(bytes_of_base64(image.get<std::string>(), ""), "");
  }

  FakeEngine engine_;
  Server server_{engine_};
};

// modules/processing.py, Processed.js()
TEST_F(WebUi, ReadsTheSettingsOfEachPicture) {
  const auto answer = json_of(post("txt2img", {{"prompt", "a fox"},
                                               {"negative_prompt", "blurry"},
                                               {"cfg_scale", 2},
                                               {"batch_size", 2},
                                               {"seed", 7},
                                               {"steps", 2},
                                               {"width", 16},
                                               {"height", 16}}));
  const auto info = json::parse(answer["info"].get<std::string>());
  EXPECT_EQ(info["all_prompts"], json({"a fox", "a fox"}));
  EXPECT_EQ(info["all_negative_prompts"], json({"blurry", "blurry"}));
  EXPECT_EQ(info["all_seeds"], json({7, 8}));
  EXPECT_EQ(info["all_subseeds"].size(), 2u);
  EXPECT_EQ(info["index_of_first_image"], 0);
  EXPECT_EQ(info["cfg_scale"], 2.0);
  ASSERT_EQ(info["infotexts"].size(), 2u);
  EXPECT_EQ(info["infotexts"][1], "a fox\nSteps: 2, Sampler: Euler, Seed: 8")
      << "the fake engine writes no more";
  const auto none = json_of(post("txt2img", {{"prompt", "a"}, {"send_images", false}}));
  EXPECT_EQ(none["images"], json::array());
  EXPECT_THAT(none["info"].get<std::string>(), HasSubstr("infotexts"));
}

// The checksums are those of the web UI's masking.fill() with Pillow 13.
TEST_F(WebUi, FillsWhatIsMaskedFromAround) {
  Pixels mask{.width = 50, .height = 30, .rgb = {}};
  for (int y = 0; y < 30; ++y)
    for (int x = 0; x < 50; ++x)
      mask.rgb.insert(mask.rgb.end(), 3, y >= 7 && y < 15 && x >= 16 && x < 33 ? 255 : 0);
  json wish = {{"prompt", "a"}, {"init_images", {file_of(noise(50, 30))}}, {"mask", file_of(mask)}};
  const auto init = [&](const json& fill) {
    wish["inpainting_fill"] = fill;
    const auto answer = post("img2img", wish);
    EXPECT_EQ(status_of(answer), 200) << answer;
    return digits_of(*engine_.last().pictures.init);
  };
  EXPECT_EQ(init(0), "98f639fb5ad417ba");
  EXPECT_EQ(init(1), digits_of(noise(50, 30)));
  EXPECT_EQ(init(nullptr), digits_of(noise(50, 30)));
}

// The web UI makes sides that are multiples of 8; the checksums are those of Pillow 13.
TEST_F(WebUi, ScalesPictures) {
  json wish = {{"image", file_of(noise(48, 32))}, {"upscaling_resize", 2}};
  const auto scaled = [&](const char* upscaler) {
    wish["upscaler_1"] = upscaler;
    const auto answer = post("extra-single-image", wish);
    EXPECT_EQ(status_of(answer), 200) << answer;
    EXPECT_TRUE(json_of(answer).contains("html_info"));
    return made(json_of(answer)["image"]);
  };
  EXPECT_EQ(digits_of(scaled("None")), digits_of(noise(48, 32)));
  EXPECT_EQ(digits_of(scaled("Lanczos")), "72babfc5aec22d6d");
  EXPECT_EQ(digits_of(scaled("Nearest")), "ad54cc6aa8d0863e");
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

TEST_F(WebUi, SaysWhatIsNoPictureInBase64) {
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

TEST_F(WebUi, SaysWhichScalingIsNotThere) {
  const auto image = file_of(noise(16, 16));
  for (const auto& [wish, words] : std::vector<std::pair<json, std::string>>{
           {json::object(), "there is no 'image'"},
           {{{"image", "AAAA"}, {"upscaler_1", "Lanczos"}}, "the image"},
           {{{"image", image}, {"upscaler_1", "R-ESRGAN 4x+"}}, "None, Lanczos and Nearest"},
           {{{"image", image}, {"gfpgan_visibility", 1}}, "no restoring of faces"},
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

// As many pictures as a request likes, but no more pixels than it may bring, in or out.
TEST_F(WebUi, BoundsThePixelsOfAllPicturesThatItScales) {
  const auto asked = [&](const json& image, int count, double factor) {
    auto list = json::array();
    for (int i = 0; i < count; ++i) list.push_back({{"data", image}, {"name", "a"}});
    return post(
        "extra-batch-images",
        {{"upscaler_1", "Nearest"}, {"upscaling_resize", factor}, {"imageList", std::move(list)}});
  };
  const auto small = file_of(noise(32, 32));
  EXPECT_EQ(status_of(asked(small, 3, 100)), 200) << "3 x 3200 x 3200";
  const auto made = asked(small, 4, 100);
  EXPECT_EQ(status_of(made), 413);
  EXPECT_THAT(made, HasSubstr("the picture would become 3200x3200, at most 33554432 pixels are "
                              "made for all pictures of a request"));
  const auto large =
      file_of({.width = 7000, .height = 5000, .rgb = std::vector<std::uint8_t>(105'000'000)});
  const auto read = asked(large, 1, 0.01);
  EXPECT_EQ(status_of(read), 413);
  EXPECT_THAT(read, HasSubstr("the image has 7000x5000 pixels, at most 33554432 pixels are read"));
}

// A picture without pixels: its header can be read, and nothing else.
TEST_F(WebUi, CountsThePixelsOfAllPicturesBeforeItReadsOne) {
  const auto file = encode_png(8, 8, noise(8, 8).rgb);
  const auto empty = base64(file.substr(0, 8 + 25) + file.substr(file.size() - 12));
  const json wish = {{"upscaler_1", "Nearest"},
                     {"imageList", {{{"data", empty}}, {{"data", file_of(noise(8, 8))}}}}};
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
}

// Sixty small pictures that take long together.
std::string long_batch() {
  const auto small = base64(encode_png(8, 8, std::vector<std::uint8_t>(8 * 8 * 3, 9)));
  const json wish = {{"upscaler_1", "Lanczos"},
                     {"upscaling_resize", 80},
                     {"imageList", json::array_t(60, {{"data", small}, {"name", "a"}})}};
  return Server::request_text("POST /sdapi/v1/extra-batch-images", "", wish.dump());
}

TEST_F(WebUi, ServesOthersBetweenThePicturesOfABatch) {
  RawClient batch(server_.port());
  batch.send(long_batch());
  const json wish = {{"upscaler_1", "Nearest"}, {"image", file_of(noise(8, 8))}};
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
  while (server->http().num_connections() > 0) std::this_thread::yield();
  EXPECT_EQ(left, 0);
  const auto abandoned = seconds_of([&] {
    RawClient client(server->port());
    client.send(long_batch());
    client.leave();
    while (left == 0 || server->http().num_connections() > 0) std::this_thread::yield();
  });
  EXPECT_LT(abandoned, whole / 2);
}

TEST_F(WebUi, AnswersWhatItsClientsAskBeforeTheyBegin) {
  for (const auto* const list :
       {"latent-upscale-modes", "sd-vae", "sd-modules", "hypernetworks", "face-restorers",
        "realesrgan-models", "prompt-styles", "script-info", "extensions"})
    EXPECT_EQ(get(list), json::array()) << list;
  EXPECT_EQ(get("scripts"), json({{"txt2img", json::array()}, {"img2img", json::array()}}));
  EXPECT_EQ(get("embeddings"), json({{"loaded", json::object()}, {"skipped", json::object()}}));
  const auto ram = get("memory")["ram"];
  EXPECT_GT(ram["used"].get<double>(), 0);
  EXPECT_EQ(ram["free"].get<double>() + ram["used"].get<double>(), ram["total"].get<double>());
  EXPECT_EQ(get("cmd-flags")["api"], true);
  EXPECT_EQ(get("options")["sd_model_checkpoint"], "demo");
  EXPECT_EQ(get("progress")["state"]["interrupted"], false);
  EXPECT_EQ(get("sd-models")[0]["filename"], "demo");
  EXPECT_EQ(status_of(server_.ask("GET /internal/ping")), 200);
  for (const std::string what : {"refresh-checkpoints", "refresh-loras", "refresh-vae",
                                 "refresh-embeddings", "reload-checkpoint"})
    for (const std::string body : {"", "{}"})
      EXPECT_EQ(status_of(server_.ask("POST /sdapi/v1/" + what, "", body)), 200) << what;
}

TEST_F(WebUi, SaysWhatIsNotThere) {
  for (const auto* const what : {"interrogate", "create/embedding", "train/embedding",
                                 "create/hypernetwork", "train/hypernetwork"}) {
    const auto answer = post(what, json::object());
    EXPECT_EQ(status_of(answer), 422) << answer;
    EXPECT_THAT(answer, HasSubstr("this server has no ")) << what;
  }
}

TEST_F(WebUi, FreesItsModelsBetweenRequests) {
  EXPECT_EQ(status_of(server_.ask("POST /sdapi/v1/unload-checkpoint")), 200);
  while (engine_.num_releases() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(status_of(post("txt2img", {{"prompt", "a"}})), 200) << "it is loaded again";
  EXPECT_EQ(status_of(server_.ask("GET /readyz")), 200);
}

TEST(WebUiRelease, WaitsForWhatRuns) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  RawClient client(server.port());
  client.send(Server::request_text("POST /sdapi/v1/txt2img", "connection: close\r\n",
                                   R"({"prompt": "a", "steps": 2})"));
  engine.wait_until_called(1);
  EXPECT_EQ(status_of(server.ask("POST /sdapi/v1/unload-checkpoint")), 200);
  EXPECT_EQ(engine.num_releases(), 0);
  engine.finish();
  EXPECT_THAT(client.read_all(), HasSubstr("images"));
  while (engine.num_releases() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(WebUiRelease, IsRefusedWhereModelsStay) {
  FakeEngine engine;
  engine.adapt = [](Backend& backend) { backend.release = {}; };
  const Server server(engine);
  const auto answer = server.ask("POST /sdapi/v1/unload-checkpoint");
  EXPECT_EQ(status_of(answer), 422);
  EXPECT_THAT(answer, HasSubstr("keeps its model"));
}

}  // namespace braid::serve::web_ui_api_test
