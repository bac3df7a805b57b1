// Transparent pictures over HTTP: kept, laid on white where opaque ones are requested, refused
// where the format or the model has none.
#include <gmock/gmock.h>

#include "image/picture_file.h"
#include "serve/body/fields.h"
#include "test_server.h"

namespace braid::serve::openai_alpha_test {

using nlohmann::json;
using testing::HasSubstr;

class OpenAiAlpha : public testing::Test {
 protected:
  OpenAiAlpha()
      : engine_([](Backend& backend) { backend.info.draws_alpha = true; }), server_(engine_) {}
  json generate(json wish) {
    wish.update({{"prompt", "a"}, {"size", "16x16"}});
    return json_of(server_.ask("POST /v1/images/generations", "", wish.dump()));
  }
  Pixels picture_of(const json& answer) {
    return decode_picture(bytes_of_base64(answer["data"][0]["b64_json"].get<std::string>(), "it"),
                          "it", kMaxPixels, with_alpha);
  }

  FakeEngine engine_;
  Server server_;
};

TEST_F(OpenAiAlpha, IsKeptWhereItWasDrawn) {
  for (const json& wish :
       {json::object(), json{{"background", "transparent"}}, json{{"output_format", "webp"}}}) {
    const auto answer = generate(wish);
    EXPECT_EQ(answer["background"], "transparent") << answer;
    EXPECT_EQ(picture_of(answer).channels(), 4);
  }
}

TEST_F(OpenAiAlpha, IsLaidOnWhiteForAnOpaqueBackground) {
  for (const auto* const format : {"png", "webp", "jpeg"}) {
    const auto answer = generate({{"background", "opaque"}, {"output_format", format}});
    EXPECT_EQ(answer["background"], "opaque") << answer;
    EXPECT_FALSE(answer.contains("warnings")) << answer;
    const auto picture = picture_of(answer);
    EXPECT_EQ(picture.channels(), 3);
    EXPECT_EQ(picture.rgb.front(), 255);
  }
}

TEST_F(OpenAiAlpha, IsNotInAJpeg) {
  const auto answer = generate({{"output_format", "jpeg"}});
  EXPECT_EQ(answer["background"], "opaque");
  EXPECT_THAT(answer["warnings"].dump(), HasSubstr("pictures are laid on white"));
  EXPECT_EQ(generate({{"output_format", "jpeg"}, {"background", "transparent"}})["error"]["param"],
            "background");
}

}  // namespace braid::serve::openai_alpha_test
