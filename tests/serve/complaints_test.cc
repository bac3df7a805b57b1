// Which field an error is about, by the name that each client has for it.
#include <gmock/gmock.h>

#include "base/base64.h"
#include "test_server.h"

namespace braid::serve::complaints_test {

// A field that was not sent is not named either.
TEST(Complaints, NameTheFieldAsItWasSent) {
  FakeEngine engine([](Backend& backend) {
    backend.complete = [](const Request& request, const Hooks&) -> Request {
      throw InputError(request.prompts.front());
    };
  });
  const Server server(engine);
  const auto picture = base64(encode_png(1, 1, std::vector<std::uint8_t>(3)));
  const auto param_of = [&](const std::string& path, const std::string& complaint,
                            nlohmann::json wish) {
    wish["prompt"] = complaint;
    const auto error = json_of(server.ask("POST " + path, "", wish.dump()))["error"];
    EXPECT_EQ(error["message"], complaint);
    return error["param"].is_null() ? "null" : error["param"].get<std::string>();
  };
  const std::string small = "a reference should have at least 64 pixels per side, one has 1x1";
  EXPECT_EQ(param_of("/v1/images/edits", small, {{"image", picture}}), "image");
  EXPECT_EQ(param_of("/v1/images/edits", small, {{"images", {picture}}}), "images");
  EXPECT_EQ(param_of("/v1/jobs", small, {{"reference", picture}}), "reference");
  EXPECT_EQ(param_of("/v1/jobs", small, nlohmann::json::object()), "null");
  const std::string jobs = "/v1/jobs";
  const std::tuple<const char*, nlohmann::json, const char*> complaints[] = {
      {"a strength of 0 leaves none of 4 steps: the picture would be the initial one",
       {{"init", picture}, {"strength", 0}},
       "strength"},
      {"padding around a mask needs a mask",
       {{"init", picture}, {"padding_crop", 8}},
       "padding_crop"},
      {"the blur of a mask needs a mask", {{"init", picture}, {"mask_blur", 2}}, "mask_blur"},
      {"a second negative prompt needs a negative prompt",
       {{"negative_prompt_2", "b"}},
       "negative_prompt_2"},
      {"this model's guidance keeps no lengths: it is not normalized",
       {{"cfg_normalize", true}},
       "cfg_normalize"},
      {"this model draws any size: it takes a width and height, not a resolution",
       {{"resolution", 640}},
       "resolution"},
      {"a shift of 1e-30 is too far from 1: noise levels that follow each other",
       {{"shift", 1e-30}},
       "shift"},
      {"the number of steps should lie between 1 and 9, it is 10",
       {{"num_inference_steps", 10}},
       "num_inference_steps"},
      {"the width should lie between 16 and 64, it is 128", {{"size", "128x64"}}, "size"}};
  for (const auto& [complaint, wish, param] : complaints)
    EXPECT_EQ(param_of(jobs, complaint, wish), param);
  EXPECT_EQ(param_of("/sdapi/v1/img2img", "a strength of 0 leaves none of 4 steps",
                     {{"init_images", {picture}}, {"denoising_strength", 0}}),
            "denoising_strength");
}

TEST(Complaints, NameTheSideThatMakesAPictureTooLarge) {
  FakeEngine engine;
  const Server server(engine);
  const auto param_of = [&](nlohmann::json wish) {
    wish["prompt"] = "a";
    return json_of(server.ask("POST /v1/images/generations", "", wish.dump()))["error"]["param"];
  };
  EXPECT_EQ(param_of({{"width", 4096}, {"height", 4096}}), "width");
  EXPECT_EQ(param_of({{"size", "4096x4096"}}), "size");
}

}  // namespace braid::serve::complaints_test
