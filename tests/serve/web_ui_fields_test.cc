// Fields of AUTOMATIC1111's web UI that this server has nothing for.
#include "serve/body/web_ui_fields.h"

#include <gmock/gmock.h>

#include <regex>

#include "test_server.h"

namespace braid::serve::web_ui_fields_test {

using nlohmann::json;
using testing::HasSubstr;

class WebUiFields : public testing::Test {
 protected:
  std::string ask(json wish) const {
    wish.update({{"prompt", "a"}, {"steps", 1}, {"width", 16}, {"height", 16}});
    return server_.ask("POST /sdapi/v1/txt2img", "", wish.dump());
  }
  void expect_refused(const std::string& field, const json& value) const {
    const auto answer = ask({{field, value}});
    EXPECT_EQ(status_of(answer), 400) << field << value;
    EXPECT_THAT(answer, HasSubstr("\"param\":\"" + field + "\"")) << value;
  }

  FakeEngine engine_;
  Server server_{engine_};
};

TEST_F(WebUiFields, ThatAskForAnotherPictureAreRefused) {
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, json>>{{"enable_hr", true},
                                                 {"enable_hr", 1},
                                                 {"enable_hr", "true"},
                                                 {"refiner_checkpoint", "sd_xl_refiner"},
                                                 {"restore_faces", true},
                                                 {"tiling", true},
                                                 {"styles", {"photo"}},
                                                 {"subseed_strength", 0.1},
                                                 {"seed_resize_from_w", 512},
                                                 {"seed_resize_from_h", 512},
                                                 {"initial_noise_multiplier", 1.1},
                                                 {"initial_noise_multiplier", 0},
                                                 {"latent_mask", "iVBORw0KGgo="},
                                                 {"script_name", "X/Y/Z plot"},
                                                 {"infotext", "a dog\nSteps: 20"}})
    expect_refused(field, value);
}

// ADetailer as SillyTavern sends it, dynamic thresholding, and one that is only named.
TEST_F(WebUiFields, AreRefusedWhereAScriptIsOn) {
  expect_refused("alwayson_scripts",
                 {{"ADetailer", {{"args", {true, true, {{"ad_model", "face_yolov8n.pt"}}}}}}});
  expect_refused("alwayson_scripts", {{"ADetailer", {{"args", {{{"ad_model", "face.pt"}}}}}}});
  expect_refused("alwayson_scripts",
                 {{"Dynamic Thresholding (CFG Scale Fix)", {{"args", {1, 7, 100}}}}});
  expect_refused("alwayson_scripts", {{"ControlNet", {{"args", {{{"module", "canny"}}}}}}});
  expect_refused("alwayson_scripts", {{"other", {{"args", {{"module", "canny"}}}}}});
  EXPECT_THAT(ask({{"alwayson_scripts", {{"Soft inpainting", {{"args", {true, 1}}}}}}}),
              HasSubstr("the script 'Soft inpainting' is not supported here"));
  for (const json& off : {json::array(), json::array({false, 7, 100}), json::array({nullptr}),
                          json::array({{{"enabled", false}, {"module", "canny"}}})})
    EXPECT_EQ(status_of(ask({{"alwayson_scripts", {{"script", {{"args", off}}}}}})), 200) << off;
}

// What the clients send where their users have chosen nothing.
TEST_F(WebUiFields, PassAtTheirDefaults) {
  const json silly_tavern = {{"sampler_name", "Euler"},
                             {"scheduler", "normal"},
                             {"cfg_scale", 1},
                             {"restore_faces", false},
                             {"enable_hr", false},
                             {"hr_upscaler", "Latent"},
                             {"hr_scale", 2},
                             {"hr_additional_modules", json::array()},
                             {"denoising_strength", 0.7},
                             {"hr_second_pass_steps", 0},
                             {"override_settings", {{"CLIP_stop_at_last_layers", 1}}},
                             {"override_settings_restore_afterwards", true},
                             {"clip_skip", 1},
                             {"send_images", true},
                             {"do_not_save_grid", false},
                             {"do_not_save_samples", false}};
  const json open_webui = {{"batch_size", 1}, {"negative_prompt", ""}};
  // Python's webuiapi 0.9.17; 1 is what the web UI takes where there is no `eta`
  const json webuiapi = {{"eta", 1.0},
                         {"scheduler", "automatic"},
                         {"sampler_name", "Euler a"},
                         {"hr_checkpoint_name", nullptr},
                         {"hr_upscaler", "Latent"},
                         {"firstphase_width", 0},
                         {"override_settings", json::object()}};
  // sd-backend-client 0.5 and nonebot-plugin-stable-diffusion-diao 0.5; pydantic reads such words
  const json others = {{"force_task_id", "task(txt2img-6RTJPKC)"},
                       {"enable_hr", "false"},
                       {"restore_faces", "False"},
                       {"tiling", "off"}};
  // the web UI's own defaults
  const json schema = {{"styles", json::array()},
                       {"subseed", -1},
                       {"subseed_strength", 0},
                       {"seed_resize_from_h", -1},
                       {"seed_resize_from_w", -1},
                       {"sampler_index", "Euler"},
                       {"s_min_uncond", nullptr},
                       {"eta", 0},
                       {"save_images", false},
                       {"s_noise", 1},
                       {"hr_sampler_name", "Use same sampler"},
                       {"hr_cfg", 1.0},
                       {"hr_distilled_cfg", 3.5},
                       {"include_init_images", false},
                       {"do_not_save_grid", true},
                       {"mask_blur_x", 4},
                       {"inpaint_full_res", true},
                       {"something_new", false},
                       {"s_churn", 0},
                       {"refiner_checkpoint", "None"},
                       {"refiner_switch_at", 0},
                       {"initial_noise_multiplier", 1},
                       {"script_name", ""},
                       {"script_args", json::array()},
                       {"alwayson_scripts", json::object()},
                       {"tiling", nullptr},
                       {"infotext", nullptr}};
  for (const auto& wish : {silly_tavern, open_webui, webuiapi, others, schema}) {
    const auto answer = ask(wish);
    EXPECT_EQ(status_of(answer), 200) << answer;
    EXPECT_FALSE(json_of(answer).contains("warnings")) << answer;
  }
}

// They must not fail, as each request of these clients has them.
TEST_F(WebUiFields, ThatAreNotFollowedAreToldOf) {
  const auto answer = ask({{"sampler_name", "DDIM CFG++"},
                           {"scheduler", "Align Your Steps"},
                           {"negative_prompt", "blurry"},

                           {"override_settings",
                            {{"CLIP_stop_at_last_layers", 2},
                             {"sd_vae", "x.pt"},
                             {"eta_noise_seed_delta", 1},
                             {"sd_model_checkpoint", "demo"}}},
                           {"cfg_scale", 0}});
  ASSERT_EQ(status_of(answer), 200) << answer;
  const json wanted = {
      "'cfg_scale' 0 is taken as 1, which is off: the negative prompt is not used",
      "the sampler is the model's own: there is no 'DDIM CFG++' here, but euler, euler_ancestral, "
      "heun, dpm_2, dpmpp_2m, res_multistep, er_sde, lcm",
      "the schedule is the model's own: there is no 'Align Your Steps' here, but model, simple, "
      "beta, karras, exponential",
      "the setting 'CLIP_stop_at_last_layers' is not used",
      "the setting 'eta_noise_seed_delta' is not used",
      "the setting 'sd_vae' is not used"};
  EXPECT_EQ(json_of(answer)["warnings"], wanted);
}

TEST_F(WebUiFields, WithoutACounterpartAreToldOf) {
  const auto warnings_of = [&](const json& wish) {
    const auto answer = ask(wish);
    EXPECT_EQ(status_of(answer), 200) << answer;
    return json_of(answer).value("warnings", json::array());
  };
  for (const auto& [field, value, why] : std::vector<std::tuple<std::string, json, std::string>>{
           {"clip_skip", 2, "is no choice of a text encoder's layer"},
           {"clip_skip", -2, "is no choice of a text encoder's layer"},
           {"eta", 0.5, "is no noise setting of samplers"},
           {"s_noise", 1.1, "is no noise setting of samplers"},
           {"save_images", true, "is no saving of pictures on the server"},
           {"override_settings_restore_afterwards", false,
            "are no settings that stay after a request"},
           {"hr_scale", 1.5, "is no second pass at a higher resolution"},
           {"hr_upscaler", "4x", "is no second pass at a higher resolution"},
           {"denoising_strength", 0.4, "is no picture to start from"}})
    EXPECT_EQ(warnings_of({{field, value}}),
              json({"'" + field + "' is not used: there " + why + " here"}));
  for (const json& value : {json(3), json("b"), json(true), json({1})})
    EXPECT_EQ(warnings_of({{"promt", value}}), json({"there is no field 'promt': it is not used"}));
  EXPECT_EQ(warnings_of({{"sampler_name", "Heun"}, {"sampler_index", "LCM"}}),
            json({"'sampler_index' 'LCM' is not used: 'sampler_name' is 'Heun'"}));
  EXPECT_EQ(engine_.last().sampling.sampler, Sampler::kHeun);
  for (const auto* const index : {"Euler", "heun", "k_heun"})
    EXPECT_EQ(warnings_of({{"sampler_name", "Heun"}, {"sampler_index", index}}), json::array());
}

TEST_F(WebUiFields, RoundASizeAndSaySo) {
  const auto sized = [&](int width, int height) {
    const json wish = {{"prompt", "a"}, {"steps", 1}, {"width", width}, {"height", height}};
    return json_of(server_.ask("POST /sdapi/v1/txt2img", "", wish.dump()));
  };
  const auto answer = sized(65, 40);
  EXPECT_EQ(answer["parameters"]["width"], 64);
  EXPECT_EQ(answer["parameters"]["height"], 32);
  EXPECT_EQ(answer["warnings"], json({"the width 65 is rounded down to 64, a multiple of 16",
                                      "the height 40 is rounded down to 32, a multiple of 16"}));
  EXPECT_FALSE(sized(64, 32).contains("warnings"));
}

TEST_F(WebUiFields, NameSamplersAndSchedules) {
  const auto taken = [&](const json& wish) {
    const auto answer = ask(wish);
    EXPECT_EQ(status_of(answer), 200) << answer;
    EXPECT_FALSE(json_of(answer).contains("warnings")) << answer;
    return engine_.last().sampling;
  };
  const std::vector<std::pair<std::string, Sampler>> names = {
      {"Euler", Sampler::kEuler},
      {"Euler a", Sampler::kEulerAncestral},
      {"euler_ancestral", Sampler::kEulerAncestral},
      {"Heun", Sampler::kHeun},
      {"DPM2", Sampler::kDpm2},
      {"DPM++ 2M", Sampler::kDpmpp2m},
      {"dpmpp_2m", Sampler::kDpmpp2m},
      {"k_euler_a", Sampler::kEulerAncestral},
      {"Res Multistep", Sampler::kResMultistep},
      {"res_multistep", Sampler::kResMultistep},
      {"ER SDE", Sampler::kErSde},
      {"er_sde", Sampler::kErSde},
      {"LCM", Sampler::kLcm}};
  for (const auto& [name, sampler] : names) {
    const auto s = taken({{"sampler_name", name}});
    EXPECT_EQ(s.sampler, sampler) << name;
    EXPECT_FALSE(s.schedule.has_value()) << name;
  }
  EXPECT_EQ(taken({{"scheduler", "Beta"}}).schedule, SigmaSchedule::kBeta);
  EXPECT_EQ(taken({{"scheduler", "Simple"}}).schedule, SigmaSchedule::kSimple);
  EXPECT_EQ(taken({{"scheduler", "Automatic"}}).schedule, std::nullopt);
  const auto both = taken({{"sampler_name", "DPM++ 2M Karras"}});
  EXPECT_EQ(both.sampler, Sampler::kDpmpp2m);
  EXPECT_EQ(both.schedule, SigmaSchedule::kKarras);
}

TEST_F(WebUiFields, SayWhichSamplerWasTaken) {
  const auto answer = json_of(ask({{"sampler_name", "Euler a"}, {"scheduler", "beta"}}));
  EXPECT_EQ(answer["parameters"]["sampler_name"], "Euler a");
  EXPECT_EQ(answer["parameters"]["scheduler"], "Beta");
  EXPECT_EQ(json::parse(answer["info"].get<std::string>())["sampler_name"], "Euler a");
}

// The names and types of Processed.js() in the web UI's modules/processing.py, which Python's
// sd-backend-client 0.5 requires; a started job's time is State.begin()'s.
TEST_F(WebUiFields, OfTheAnswersInfoAreAllThere) {
  const auto answer = json_of(ask({{"batch_size", 2}}));
  const auto info = json::parse(answer["info"].get<std::string>());
  for (const auto* const text : {"prompt", "negative_prompt", "sampler_name", "sd_model_name",
                                 "sd_model_hash", "job_timestamp", "version"})
    EXPECT_TRUE(info.contains(text) && info[text].is_string()) << text;
  for (const auto* const number :
       {"seed", "subseed", "width", "height", "steps", "batch_size", "seed_resize_from_w",
        "seed_resize_from_h", "index_of_first_image", "clip_skip"})
    EXPECT_TRUE(info.contains(number) && info[number].is_number_integer()) << number;
  for (const auto* const list :
       {"all_prompts", "all_negative_prompts", "all_seeds", "all_subseeds", "infotexts"})
    EXPECT_TRUE(info.contains(list) && info[list].size() == 2) << list;
  for (const auto* const other :
       {"subseed_strength", "cfg_scale", "restore_faces", "face_restoration_model", "sd_vae_name",
        "sd_vae_hash", "denoising_strength", "extra_generation_params", "styles",
        "is_using_inpainting_conditioning"})
    EXPECT_TRUE(info.contains(other)) << other;
  EXPECT_TRUE(std::regex_match(info.value("job_timestamp", ""), std::regex("20[0-9]{12}")));
}

}  // namespace braid::serve::web_ui_fields_test
