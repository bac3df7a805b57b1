// Which field an error is about, by the name that each client has for it.
#include <gmock/gmock.h>

#include "base/base64.h"
#include "base/request_error.h"
#include "serve/body/complaints.h"
#include "test_server.h"

namespace braid::serve::complaints_test {

// A field that was not sent is not named either.
TEST(Complaints, NameTheFieldAsItWasSent) {
  FakeEngine engine([](Backend& backend) {
    backend.complete = [](const Request& request, const Hooks&) -> Request {
      throw RequestError(request.prompts.front(), "it is wrong");
    };
  });
  const Server server(engine);
  const auto picture = base64(encode_png(1, 1, std::vector<std::uint8_t>(3)));
  const auto param_of = [&](const std::string& path, const std::string& field,
                            nlohmann::json wish) {
    wish["prompt"] = field;
    const auto error = json_of(server.ask("POST " + path, "", wish.dump()))["error"];
    EXPECT_EQ(error["message"], "it is wrong");
    return error["param"].is_null() ? "null" : error["param"].get<std::string>();
  };
  EXPECT_EQ(param_of("/v1/images/edits", "reference", {{"image", picture}}), "image");
  EXPECT_EQ(param_of("/v1/images/edits", "reference", {{"images", {picture}}}), "images");
  EXPECT_EQ(param_of("/v1/jobs", "reference", {{"reference", picture}}), "reference");
  EXPECT_EQ(param_of("/v1/jobs", "reference", nlohmann::json::object()), "null");
  EXPECT_EQ(param_of("/v1/jobs", "shift", {{"shift", 1e-30}}), "shift");
  EXPECT_EQ(param_of("/v1/jobs", "steps", {{"num_inference_steps", 10}}), "num_inference_steps");
  EXPECT_EQ(param_of("/v1/jobs", "width", {{"size", "128x64"}}), "size");
  EXPECT_EQ(param_of("/sdapi/v1/img2img", "strength",
                     {{"init_images", {picture}}, {"denoising_strength", 0}}),
            "denoising_strength");
}

// What is read as a file would be is named so, too: "`boxes`: box 1 has no 'id'".
TEST(Complaints, NameTheFieldThatASentenceBeginsWith) {
  EXPECT_EQ(field_of(InputError("`boxes`: box 1 has no 'id'")), "boxes");
  EXPECT_EQ(field_of(RequestError("steps", "`boxes`")), "steps");
  EXPECT_EQ(field_of(InputError("there is no such file")), "");
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
