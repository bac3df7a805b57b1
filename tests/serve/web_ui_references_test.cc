// Pictures that a model looks at, as the web UI's clients and those of stable-diffusion.cpp send
// them.
#include <gmock/gmock.h>

#include "web_ui_client.h"

namespace braid::serve::web_ui_references_test {

using nlohmann::json;
using testing::HasSubstr;

std::string grey(std::uint8_t value) {
  return base64(encode_png(16, 16, std::vector<std::uint8_t>(768, value)));
}

// What each picture is used as, by its grey: "i1 r2 r3", and "m" for a mask.
std::string used(const PicturesIn& in) {
  std::string text;
  const auto add = [&](const char* role, const Pixels& picture) {
    text += (text.empty() ? "" : " ") + text_of(role, int(picture.rgb.front()));
  };
  if (in.init) add("i", *in.init);
  if (in.mask) add("m", *in.mask);
  for (const auto& reference : in.references) add("r", reference);
  return text;
}

class WebUiReferences : public testing::Test {
 protected:
  void serve(const ModelInfo::Pictures& pictures) {
    server_.reset();
    engine_.adapt = [=](Backend& backend) { backend.info.pictures = pictures; };
    server_.emplace(engine_);
  }
  std::string ask(const std::string& path, json wish) const {
    wish.update({{"prompt", "a"}, {"steps", 1}});
    return server_->ask("POST /sdapi/v1/" + path, "", wish.dump());
  }
  // What the engine gets, or the complaint.
  std::string used_for(const std::string& path, const json& wish) {
    const auto answer = ask(path, wish);
    if (status_of(answer) != 200) return json_of(answer)["error"]["message"].get<std::string>();
    return used(engine_.last().pictures);
  }

  FakeEngine engine_;
  std::optional<Server> server_;
};

// Kontext and klein start from a picture with a mask alone.
TEST_F(WebUiReferences, AreWhatAnEditingModelGetsWithoutAMask) {
  serve({.takes_init = true, .takes_mask = true, .init_needs_mask = true, .most_references = 2});
  EXPECT_EQ(used_for("img2img", {{"init_images", {grey(1)}}}), "r1");
  EXPECT_EQ(used_for("img2img", {{"init_images", {grey(1), grey(2)}}, {"mask", ""}}), "r1 r2");
  EXPECT_EQ(used_for("img2img", {{"init_images", {grey(1)}}, {"mask", grey(255)}}), "i1 m255");
  const auto answer = ask("img2img", {{"init_images", {grey(1)}}, {"denoising_strength", 0.4}});
  EXPECT_THAT(json_of(answer)["warnings"].dump(), HasSubstr("'denoising_strength' is not used"));
  const auto resized = [&](json wish) {
    wish.update({{"init_images", {grey(1)}}, {"width", 32}, {"height", 16}});
    return json_of(ask("img2img", wish)).value("warnings", json::array()).dump();
  };
  for (const int mode : {1, 2})
    EXPECT_THAT(
        resized({{"resize_mode", mode}}),
        HasSubstr(text_of("'resize_mode' ", mode, " is not used: the pictures are references")));
  EXPECT_EQ(resized({{"resize_mode", 0}}), "[]");
  EXPECT_EQ(resized({{"resize_mode", 1}, {"mask", grey(255)}}), "[]");
  EXPECT_THAT(used_for("img2img", {{"init_images", {grey(1), grey(2), grey(3)}}}),
              HasSubstr("this model takes 2 pictures as 'init_images', there are 3"));
}

// Redux: a picture to start from is one without a mask, too.
TEST_F(WebUiReferences, AreNotWhatAnotherModelStartsFrom) {
  serve({.takes_init = true, .takes_mask = true, .most_references = 2});
  EXPECT_EQ(used_for("img2img", {{"init_images", {grey(1)}}}), "i1");
  EXPECT_EQ(used_for("img2img", {{"init_images", {grey(1)}}, {"extra_images", {grey(2)}}}),
            "i1 r2");
}

// Qwen-Image-Edit and Qwen-Image-Layered; a model with a control picture
TEST_F(WebUiReferences, AreNotMaskedWhereAModelDoesNotStartFromThem) {
  const auto words = "this model takes no masks: it does not start from its pictures";
  for (const ModelInfo::Pictures& pictures :
       {ModelInfo::Pictures{.most_references = 3}, ModelInfo::Pictures{.takes_control = true}}) {
    serve(pictures);
    EXPECT_EQ(used_for("img2img", {{"init_images", {grey(1)}}, {"mask", grey(255)}}), words);
    const json edit = {{"prompt", "a"}, {"image", grey(1)}, {"mask", grey(255)}};
    const auto error = json_of(server_->ask("POST /v1/images/edits", "", edit.dump()))["error"];
    EXPECT_EQ(error["message"], words);
    EXPECT_EQ(error["param"], "mask");
  }
}

// stable-diffusion.cpp's examples/server and KoboldCpp
TEST_F(WebUiReferences, AreItsExtraImages) {
  serve({.most_references = 2});
  EXPECT_EQ(used_for("txt2img", {{"extra_images", {grey(3), grey(4)}}}), "r3 r4");
  EXPECT_EQ(used_for("img2img", {{"init_images", {grey(1)}}, {"extra_images", {grey(3)}}}),
            "r1 r3");
  for (const json& none : {json::array(), json(""), json()})
    EXPECT_EQ(used_for("txt2img", {{"extra_images", none}}), "") << none;
  EXPECT_EQ(used_for("txt2img", {{"extra_images", {grey(3), grey(4), grey(5)}}}),
            "this model takes 2 pictures as 'extra_images', there are 3");
  EXPECT_EQ(used_for("img2img", {{"init_images", {grey(1)}}, {"extra_images", {grey(3), grey(4)}}}),
            "this model takes 1 more picture as 'extra_images', there are 2");
  const auto empty = ask("txt2img", {{"extra_images", {grey(3), ""}}});
  EXPECT_EQ(json_of(empty)["error"]["param"], "extra_images");
  serve({.takes_init = true});
  EXPECT_EQ(used_for("txt2img", {{"extra_images", {grey(3)}}}),
            "this model takes 0 pictures as 'extra_images', there is 1");
}

}  // namespace braid::serve::web_ui_references_test
