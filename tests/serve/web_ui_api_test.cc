// What clients of AUTOMATIC1111's and Forge's web UI send by default, read, and ask for besides.
#include <gmock/gmock.h>

#include "image/mask.h"
#include "serve/api/sdapi_overlay.h"
#include "wait_until.h"
#include "web_ui_client.h"

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
    engine_.adapt = [=, this](Backend& backend) {
      backend.info.guidance_kind = kind;
      backend.info.guidance = guidance;
      backend.unguided = unguided;
      backend.embeds_guidance = embeds_guidance_;
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
  bool embeds_guidance_ = true;
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

// A default of 0, which a model's generation_config.json may have, is a number like others. Schnell
// has no input for one.
TEST_F(WebUiScalesTaken, ByADistilledModelAreItsNumberWhateverItsDefault) {
  serve(GuidanceKind::kEmbeddedOrTrue, 0);
  EXPECT_EQ(taken({{"distilled_cfg_scale", 3.5}}), (Taken{3.5, 1, {}}));
  expect_none();
  EXPECT_EQ(answer_["parameters"]["distilled_cfg_scale"], 3.5);
  embeds_guidance_ = false;
  serve(GuidanceKind::kEmbeddedOrTrue, 0);
  EXPECT_EQ(taken({{"distilled_cfg_scale", 3.5}}), (Taken{0.0, 1, {}}));
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

// No model is led towards its negative prompt here: diffusers' `true_cfg_scale` does nothing up to
// 1 either.
TEST_F(WebUiScalesTaken, BelowOneAreOffAndBelowZeroRefused) {
  const std::vector<std::pair<GuidanceKind, Taken>> kinds = {
      {GuidanceKind::kNone, {4.0, 1, {}}},
      {GuidanceKind::kEmbedded, {4.0, 1, {}}},
      {GuidanceKind::kEmbeddedOrTrue, {4.0, 1, {}}},
      {GuidanceKind::kTrue, {1.0, 1, {}}}};
  for (const auto& [kind, off] : kinds) {
    serve(kind, 4);
    for (const double scale : {0.0, 0.5}) {
      EXPECT_EQ(taken({{"cfg_scale", scale}}), off);
      ASSERT_EQ(answer_["warnings"].size(), 1u) << answer_["warnings"];
      expect_warning(text_of("'cfg_scale' ", scale, " is taken as 1, which is off"));
      EXPECT_EQ(answer_["parameters"]["cfg_scale"], 1.0);
      EXPECT_EQ(taken({{"cfg_scale", scale}, {"negative_prompt", "b"}}), off);
      ASSERT_EQ(answer_["warnings"].size(), 1u) << answer_["warnings"];
      expect_warning("which is off: the negative prompt is not used");
    }
    for (const auto* const negative : {"", "b"}) {
      const json wish = {{"prompt", "a"}, {"cfg_scale", -1}, {"negative_prompt", negative}};
      const auto refusal = server_->ask("POST /sdapi/v1/txt2img", "", wish.dump());
      EXPECT_EQ(status_of(refusal), 400) << refusal;
      EXPECT_EQ(json_of(refusal)["error"]["param"], "cfg_scale");
      EXPECT_THAT(refusal, HasSubstr("'cfg_scale' should be at least 0"));
    }
  }
}

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
  EXPECT_EQ(info["infotexts"][1], "a fox\nSteps: 2, Seed: 8") << "the fake engine writes no more";
  EXPECT_EQ(info["denoising_strength"], nullptr);
  const json start = {
      {"prompt", "a"},
      {"init_images", {base64(encode_png(16, 16, std::vector<std::uint8_t>(768)))}}};
  for (const auto& [sent, told] : {std::pair<json, double>{nullptr, 0.75}, {0.3, 0.3}}) {
    auto wish = start;
    wish["denoising_strength"] = sent;
    const auto redrawn = json_of(post("img2img", wish));
    EXPECT_EQ(json::parse(redrawn["info"].get<std::string>())["denoising_strength"], told);
    EXPECT_EQ(redrawn["parameters"]["denoising_strength"], told);
  }
  for (const json& off : {json(false), json(0), json("False")}) {
    const auto none = json_of(post("txt2img", {{"prompt", "a"}, {"send_images", off}}));
    EXPECT_EQ(none["images"], json::array()) << off;
  }
  for (const json& on : {json(true), json(1), json("on"), json()}) {
    const auto one = json_of(post("txt2img", {{"prompt", "a"}, {"send_images", on}}));
    EXPECT_EQ(one["images"].size(), 1u) << on;
  }
  EXPECT_THAT(post("txt2img", {{"prompt", "a"}, {"send_images", "never"}}),
              HasSubstr("'send_images' should be true or false"));
  const auto none = json_of(post("txt2img", {{"prompt", "a"}, {"send_images", false}}));
  EXPECT_THAT(none["info"].get<std::string>(), HasSubstr("infotexts"));
}

// The checksums are those of the web UI's masking.fill() with Pillow 13.
TEST_F(WebUi, FillsWhatIsMaskedFromAround) {
  Pixels mask{.width = 50, .height = 30, .rgb = {}};
  for (int y = 0; y < 30; ++y)
    for (int x = 0; x < 50; ++x)
      mask.rgb.insert(mask.rgb.end(), 3, y >= 7 && y < 15 && x >= 16 && x < 33 ? 255 : 0);
  json wish = {
      {"prompt", "a"}, {"init_images", {file_of(noise_picture(50, 30))}}, {"mask", file_of(mask)}};
  const auto init = [&](const json& fill) {
    wish["inpainting_fill"] = fill;
    const auto answer = post("img2img", wish);
    EXPECT_EQ(status_of(answer), 200) << answer;
    return picture_digest(*engine_.last().pictures.init);
  };
  EXPECT_EQ(init(0), "98f639fb5ad417ba");
  EXPECT_EQ(init(1), picture_digest(noise_picture(50, 30)));
  EXPECT_EQ(init(nullptr), picture_digest(noise_picture(50, 30)));
}

TEST_F(WebUi, HearsOfItsBatchesAsItSentThem) {
  const auto answer =
      json_of(post("txt2img", {{"prompt", "a"}, {"batch_size", 2}, {"n_iter", 3}, {"steps", 1}}));
  EXPECT_EQ(answer["images"].size(), 6u);
  const auto info = json::parse(answer["info"].get<std::string>());
  for (const auto& told : {answer["parameters"], info}) {
    EXPECT_EQ(told["batch_size"], 2);
    EXPECT_EQ(told["n_iter"], 3);
  }
}

// The checksums are those of the web UI's init() and apply_overlay(), of modules/processing.py,
// with Pillow 13: of a picture of the value 7, which is the fake engine's, and a mask that
// brightens from the left to the right.
TEST_F(WebUi, KeepsWhatTheMaskKeeps) {
  const auto made_of = [&](int width, int height, const json& more) {
    Pixels mask{.width = width, .height = height, .rgb = {}};
    for (int i = 0; i < width * height; ++i)
      mask.rgb.insert(mask.rgb.end(), 3, std::uint8_t(std::min(255, 6 * (i % width))));
    json wish = {
        {"prompt", "a"}, {"seed", 7},    {"init_images", {file_of(noise_picture(width, height))}},
        {"width", 48},   {"height", 32}, {"mask", file_of(mask)}};
    wish.update(more);
    return made(json_of(post("img2img", wish))["images"][0]);
  };
  const auto same_size = made_of(48, 32, json::object());
  EXPECT_EQ(picture_digest(same_size), "c353025f26c004dd");
  const auto init = noise_picture(48, 32);
  for (std::size_t at = 0; at < init.rgb.size(); at += std::size_t(48) * 3)
    EXPECT_EQ(same_size.rgb[at], init.rgb[at]) << "where the mask is black";
  EXPECT_EQ(picture_digest(made_of(50, 30, json::object())), "27799b495215d120");
  const json filled = {{"inpainting_fill", 0}};  // overlay_images are made before masking.fill()
  EXPECT_EQ(picture_digest(made_of(48, 32, filled)), "c353025f26c004dd");
  EXPECT_EQ(picture_digest(made_of(50, 30, filled)), "27799b495215d120");
  EXPECT_EQ(picture_digest(made_of(48, 32, {{"inpaint_full_res", true}})),
            picture_digest(grey_picture(48, 32, 7)))
      << "the engine puts a crop back";
  const auto init_alone =
      post("img2img", {{"prompt", "a"}, {"seed", 7}, {"init_images", {file_of(init)}}});
  EXPECT_EQ(made(json_of(init_alone)["images"][0]).rgb, grey_picture(48, 32, 7).rgb);
}

// The engine puts a crop back with what it began with, which was filled. Another rounding remains.
TEST_F(WebUi, KeepsWhatTheMaskKeepsAroundACrop) {
  const auto unfilled = noise_picture(48, 32);
  PicturesIn in{.init = noise_picture(48, 32), .mask = noise_picture(48, 32), .padding_crop = 0};
  std::ranges::reverse(in.init->rgb);
  for (int i = 0; i < 48 * 32 * 3; ++i) in.mask->rgb[std::size_t(i)] = std::uint8_t(i / 3 % 256);
  const Region region{.left = 8, .top = 4, .width = 30, .height = 20};
  const auto drawn = grey_picture(30, 20, 7);
  const auto want = put_back(drawn, region, unfilled, *in.mask);
  Picture picture;
  picture.width = 48;
  picture.height = 32;
  picture.rgb = put_back(drawn, region, *in.init, *in.mask).rgb;
  lay_over_kept_part(picture, in, unfilled);
  for (std::size_t i = 0; i < want.rgb.size(); ++i)
    EXPECT_NEAR(picture.rgb[i], want.rgb[i], 2) << i;
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

class WebUiProgress : public testing::Test {
 protected:
  // Starts a job and returns what is told of it after its first step.
  json progress_of(const json& job) {
    EXPECT_EQ(status_of(server_.ask("POST /v1/jobs", "", job.dump())), 202);
    engine_.wait_until_called(1);
    engine_.release(1);
    json progress;
    EXPECT_TRUE(wait_until([&] {
      progress = now();
      return progress["state"]["sampling_step"] == 1;
    }));
    return progress;
  }
  json now(const std::string& parameters = "") const {
    return json_of(server_.ask("GET /sdapi/v1/progress" + parameters));
  }

  FakeEngine engine_{FakeEngine::Steps::kHeld};
  Server server_{engine_};
};

// Who knows a job's id may read its prompt and cancel it.
TEST_F(WebUiProgress, SaysOfAnothersJobHowFarItIsAndNoMore) {
  const auto progress =
      progress_of({{"prompt", "a"}, {"steps", 4}, {"previews", true}, {"user", "alice"}});
  EXPECT_EQ(progress["state"]["job"], "");
  EXPECT_EQ(progress["current_image"], nullptr);
  EXPECT_EQ(progress["progress"], 0.25);
  EXPECT_EQ(progress["state"]["job_count"], 1);
  EXPECT_EQ(progress["state"]["sampling_steps"], 4);
}

TEST_F(WebUiProgress, HasTheIdAndImageOfItsClientsJob) {
  const auto progress = progress_of({{"prompt", "a"}, {"steps", 4}, {"previews", true}});
  EXPECT_NE(progress["state"]["job"], "");
  EXPECT_NE(progress["state"]["job_timestamp"], "0");
  EXPECT_TRUE(progress["current_image"].is_string());
  for (const std::string yes : {"true", "True", "1", "on"}) {
    const auto without = now("?skip_current_image=" + yes);
    EXPECT_EQ(without["state"]["job"], progress["state"]["job"]);
    EXPECT_EQ(without["current_image"], nullptr) << yes;
  }
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
  EXPECT_TRUE(wait_until([&] { return engine_.num_releases() > 0; }));
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
  EXPECT_TRUE(wait_until([&] { return engine.num_releases() > 0; }));
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
