// What is sent, what is kept, and what comes of it.
#include "net/enhancer/enhancer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "image/picture_file.h"
#include "message_of.h"
#include "net/enhancer/enhanced_size.h"
#include "net/enhancer/shown_pictures.h"
#include "net/made_certificate.h"
#include "net/stand_in_chat.h"
#include "pictures.h"
#include "temporary_folder.h"

namespace braid::net::enhancer_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

const char* const kTexts = R"({"t2i": "draw", "i2i": "edit", "t2i_bbox": "draw boxes",
                               "i2i_bbox": "edit boxes"})";

class Enhancing : public testing::Test {
 protected:
  SystemPrompts prompts(const std::string& name, const std::string& contents) const {
    write_file(folder_.path() / name, contents);
    return read_system_prompts(folder_.path() / name);
  }
  EnhancedPrompt enhanced(StandInChat& chat, const SystemPrompts& prompts,
                          const PlainPrompt& prompt = {.text = "a fox"}) const {
    const Enhancer enhancer({.url = chat.url()}, prompts, answers_in_folder(answers()));
    auto enhanced = enhancer.enhance(prompt, {});
    if (enhanced.keep) enhanced.keep();
    return enhanced;
  }
  fs::path answers() const { return folder_.path() / "answers"; }
  std::size_t num_kept() const {
    return fs::exists(answers()) ? std::size_t(std::distance(fs::directory_iterator(answers()), {}))
                                 : 0;
  }

  const TemporaryFolder folder_;
};

TEST_F(Enhancing, AsksAnyChatModelAsItsServerWouldSample) {
  StandInChat chat;
  EXPECT_EQ(enhanced(chat, system_prompts_for({})).prompt, "a fox in the snow, photograph");
  const auto json = chat.questions().at(0).json();
  EXPECT_EQ(json["messages"][0]["role"], "system");
  EXPECT_THAT(json["messages"][0]["content"].get<std::string>(), HasSubstr("draws pictures"));
  EXPECT_EQ(json["messages"][1], nlohmann::json({{"role", "user"}, {"content", "a fox"}}));
  EXPECT_EQ(json["stream"], false);
  EXPECT_EQ(json.size(), 3u) << json;
}

TEST_F(Enhancing, AsksQwensEnhancerAsItsCardSays) {
  StandInChat chat(R"(<think>hm</think>{"rewritten_prompt": "A fox.", "wh_ratio": "16:9"})");
  const auto read = enhanced(chat, prompts("system_prompt.txt", "rewrite"));
  EXPECT_EQ(read.prompt, "A fox.");
  EXPECT_EQ(read.shape->width, 16);
  const auto json = chat.questions().at(0).json();
  EXPECT_EQ(json["messages"][0]["content"], "rewrite");
  EXPECT_EQ(json["top_k"], 20);
  EXPECT_EQ(json["presence_penalty"], 1.5);
  EXPECT_EQ(json["max_tokens"], 16256);
  EXPECT_EQ(json["chat_template_kwargs"]["enable_thinking"], true);
}

TEST_F(Enhancing, AsksFlux3sEnhancerForEachTask) {
  StandInChat chat("A caption.");
  const auto texts = prompts("system_prompts.json", kTexts);
  const auto grey = grey_picture(64, 32, 100);
  const char* const boxes = R"([{"id": "cup_1", "bbox": [0.1, 0.2, 0.3, 0.4], "desc": "a cup"}])";
  enhanced(chat, texts);
  enhanced(chat, texts, {.text = "a fox", .pictures = {&grey}});
  const auto laid_out = enhanced(chat, texts, {.text = " a fox ", .boxes = boxes});
  enhanced(chat, texts, {.text = "a fox", .boxes = boxes, .pictures = {&grey}});
  const auto asked = chat.questions();
  ASSERT_EQ(asked.size(), 4u);
  const auto system = [&](int i) { return asked[i].json()["messages"][0]["content"]; };
  EXPECT_EQ(system(0), "draw");
  EXPECT_EQ(system(1), "edit");
  EXPECT_EQ(system(2), "draw boxes");
  EXPECT_EQ(system(3), "edit boxes");
  EXPECT_EQ(asked[0].json()["temperature"], 0);
  EXPECT_EQ(asked[0].json()["max_tokens"], 3584);
  EXPECT_EQ(asked[0].json()["chat_template_kwargs"]["enable_thinking"], false);
  EXPECT_THAT(asked[1].json()["messages"][1]["content"][1]["text"].get<std::string>(),
              HasSubstr("User request: a fox\nOutput the caption."));
  // format_layout_request in diffusers.modular_pipelines.flux3.prompt_upsampler
  EXPECT_EQ(asked[2].json()["messages"][1]["content"],
            "ORIGINAL PROMPT:\na fox\n\nLOCKED BOUNDING-BOX ANNOTATIONS ([y_min, x_min, y_max, "
            "x_max] on a 0-1000 canvas, with (0, 0) at the top-left). This is an authoritative "
            "JSON list of dictionaries; preserve every supplied identity, provenance value, null, "
            "and coordinate exactly:\n[{\"id\": \"cup_1\", \"bbox\": [100, 200, 300, 400], "
            "\"desc\": \"a cup\"}]");
  EXPECT_EQ(laid_out.prompt, "A caption.");
  EXPECT_EQ(laid_out.boxes, R"([{"id": "cup_1", "bbox": [100, 200, 300, 400], "desc": "a cup"}])");
}

TEST_F(Enhancing, SendsPicturesOnWhiteAsJpegs) {
  StandInChat chat("A caption.");
  auto clear = grey_picture(40, 20, 0);
  clear.alpha.assign(40 * 20, 0);
  const auto large = grey_picture(2000, 1500, 50);
  enhanced(chat, system_prompts_for({}), {.text = "a fox", .pictures = {&clear, &large}});
  const auto content = chat.questions().at(0).json()["messages"][1]["content"];
  ASSERT_EQ(content.size(), 3u);
  const auto shown = [&](int i) {
    const std::string url = content[i]["image_url"]["url"], head = "data:image/jpeg;base64,";
    EXPECT_EQ(url.substr(0, head.size()), head);
    return decode_picture(decode_base64(url.substr(head.size())).value(), "shown");
  };
  EXPECT_EQ(shown(0).width, 40) << "never enlarged";
  EXPECT_EQ(shown(0).rgb.front(), 255);
  EXPECT_EQ(shown(1).width, 1182) << "a megapixel";
  EXPECT_EQ(shown(1).height, 886);
  EXPECT_EQ(content[2], nlohmann::json({{"type", "text"}, {"text", "a fox"}}));
}

TEST_F(Enhancing, RefusesMorePicturesThanItLooksAt) {
  StandInChat chat;
  const auto grey = grey_picture(4, 4, 1);
  EXPECT_THAT(message_of<InputError>([&] {
                enhanced(chat, system_prompts_for({}),
                         {.text = "a", .pictures = std::vector<const Pixels*>(11, &grey)});
              }),
              HasSubstr("up to 10 pictures, there are 11"));
  EXPECT_TRUE(chat.all().empty());
}

TEST_F(Enhancing, AsksOnceForTheSame) {
  int asked = 0;
  StandInChat chat(
      [&](const auto&) { return StandInChat::completion("answer " + std::to_string(++asked)); });
  const auto texts = system_prompts_for({});
  EXPECT_EQ(enhanced(chat, texts).prompt, "answer 1");
  EXPECT_EQ(enhanced(chat, texts).prompt, "answer 1");
  EXPECT_EQ(enhanced(chat, texts, {.text = "a dog"}).prompt, "answer 2");
  EXPECT_EQ(enhanced(chat, prompts("own.txt", "rewrite")).prompt, "answer 3");
  const auto grey = grey_picture(4, 4, 1), white = grey_picture(4, 4, 255);
  EXPECT_EQ(enhanced(chat, texts, {.text = "a fox", .pictures = {&grey}}).prompt, "answer 4");
  EXPECT_EQ(enhanced(chat, texts, {.text = "a fox", .pictures = {&white}}).prompt, "answer 5");
  const Enhancer other({.url = chat.url(), .model = "other"}, texts, answers_in_folder(answers()));
  EXPECT_EQ(other.enhance({.text = "a fox"}, {}).prompt, "answer 6");
  EXPECT_EQ(other.enhance({.text = "a fox"}, {}).prompt, "answer 7") << "nobody kept it";
  EXPECT_EQ(enhanced(chat, texts).prompt, "answer 1");
  EXPECT_EQ(num_kept(), 5u);
}

TEST_F(Enhancing, KeepsNoNonsense) {
  StandInChat chat("<think>");
  EXPECT_THROW(enhanced(chat, system_prompts_for({})), EnhancerFailure);
  EXPECT_THROW(enhanced(chat, system_prompts_for({})), EnhancerFailure);
  EXPECT_EQ(chat.questions().size(), 2u);
  EXPECT_EQ(num_kept(), 0u);
}

TEST_F(Enhancing, WorksWhereNothingCanBeKept) {
  StandInChat chat;
  write_file(answers(), "a file, not a folder");
  EXPECT_EQ(enhanced(chat, system_prompts_for({})).prompt, "a fox in the snow, photograph");
  EXPECT_EQ(Enhancer({.url = chat.url()}, system_prompts_for({}), answers_in_folder({}))
                .enhance({.text = "a"}, {})
                .prompt,
            "a fox in the snow, photograph");
}

TEST_F(Enhancing, ForgetsWhatWasUsedLongestAgo) {
  const auto store = answers_in_folder(answers(), 2);
  const auto age = [&](const char* key, int hours) {
    fs::last_write_time(answers() / key,
                        fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  store.keep("a", "1");
  store.keep("b", "2");
  age("a", 3), age("b", 2);
  EXPECT_EQ(store.find("a"), "1") << "used now";
  store.keep("c", "3");
  EXPECT_EQ(store.find("b"), std::nullopt);
  EXPECT_EQ(store.find("a"), "1");
  EXPECT_EQ(store.find("c"), "3");
  EXPECT_EQ(fs::status(answers()).permissions(), fs::perms::owner_all) << "for the user alone";
}

TEST(Answers, AreKeptInMemoryForAServer) {
  const auto store = answers_in_memory(2);
  for (const char* const key : {"a", "b", "c"}) store.keep(key, key);
  EXPECT_EQ(store.find("a"), std::nullopt);
  EXPECT_EQ(store.find("b"), "b");
  EXPECT_EQ(store.find("c"), "c");
}

TEST(Answers, LieInTheUsersCache) {
  const SetVariable caches("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(answer_folder(), "/caches/braid/enhanced");
}

TEST_F(Enhancing, FindsSystemPromptsInFolders) {
  const auto folder = folder_.path() / "pe";
  fs::create_directories(folder / "prompt_upsampler");
  EXPECT_EQ(int(system_prompts_for(folder).kind), int(EnhancerKind::kPlain));
  EXPECT_THAT(message_of<InputError>([&] { read_system_prompts(folder); }),
              HasSubstr("has neither a system_prompt.txt nor a system_prompts.json"));
  write_file(folder / "system_prompt.txt", "rewrite");
  EXPECT_EQ(read_system_prompts(folder).texts.at("i2i_bbox"), "rewrite");
  EXPECT_EQ(int(read_system_prompts(folder).kind), int(EnhancerKind::kRewriter));
  fs::remove(folder / "system_prompt.txt");
  write_file(folder / "prompt_upsampler" / "system_prompts.json", kTexts);
  EXPECT_EQ(system_prompts_for(folder).texts.at("i2i_bbox"), "edit boxes");
  EXPECT_EQ(int(system_prompts_for(folder).kind), int(EnhancerKind::kCaptioner));
}

TEST_F(Enhancing, RefusesFilesThatTellAnEnhancerNothing) {
  for (const char* const contents : {"", " \n", "\xff"})
    EXPECT_THROW(prompts("own.txt", contents), InputError) << contents;
  for (const char* const contents :
       {"", "[]", R"({"t2i": "draw"})", R"({"t2i": 1, "i2i": "", "t2i_bbox": "", "i2i_bbox": ""})"})
    EXPECT_THROW(prompts("system_prompts.json", contents), InputError) << contents;
  EXPECT_THROW(read_system_prompts(folder_.path() / "missing.txt"), InputError);
}

// get_reference_size of diffusers.modular_pipelines.flux3.prompt_upsampler
TEST(ShownPictures, HaveTheSizesOfFlux3sEnhancer) {
  struct Case {
    int width, height, count, shown_width, shown_height;
  };
  for (const auto& c :
       {Case{1024, 1024, 1, 1024, 1024}, Case{4000, 3000, 1, 1152, 864}, Case{100, 77, 1, 96, 64},
        Case{48, 80, 1, 64, 64}, Case{16, 16, 1, 32, 32}, Case{30, 5000, 1, 32, 4992},
        Case{5000, 30, 1, 4992, 32}, Case{1920, 1080, 2, 960, 512}, Case{724, 724, 2, 704, 704},
        Case{512, 513, 3, 512, 512}, Case{33, 6400, 10, 32, 6400},
        Case{1040, 1040, 1, 1024, 1024}}) {
    const auto shown = shared_size(c.width, c.height, c.count);
    EXPECT_EQ(shown.width, c.shown_width) << c.width << "x" << c.height;
    EXPECT_EQ(shown.height, c.shown_height) << c.width << "x" << c.height;
  }
  EXPECT_THROW(shared_size(10, 2001, 1), InputError);
}

TEST(EnhancedSize, IsThatOfTheCard) {
  const auto size = [](int w, int h, WidthHeight usual) {
    const auto found =
        enhanced_size({.prompt = "a", .shape = WidthHeight{w, h}}, usual, 16, {}).value();
    return text_of(found.width, "x", found.height);
  };
  EXPECT_EQ(size(16, 9, {2048, 2048}), "2752x1536");
  EXPECT_EQ(size(2, 3, {2048, 2048}), "1696x2528");
  EXPECT_EQ(size(32, 18, {2048, 2048}), "2752x1536");
  EXPECT_EQ(size(1, 1, {1024, 1024}), "1024x1024");
  EXPECT_EQ(size(16, 9, {1024, 1024}), "1376x768");
  EXPECT_EQ(size(16, 1, {64, 64}), "256x32");
}

TEST(EnhancedSize, MayBeThatOfAPicture) {
  const std::vector<WidthHeight> pictures = {{4000, 3000}, {640, 480}};
  const auto like = [&](int number) {
    return enhanced_size({.prompt = "a", .like_picture = number}, {1024, 1024}, 16, pictures)
        .value();
  };
  EXPECT_EQ(like(1).width, 1184);
  EXPECT_EQ(like(1).height, 896);
  EXPECT_EQ(like(2).width, 640);
  EXPECT_EQ(like(2).height, 480);
  EXPECT_FALSE(enhanced_size({.prompt = "a"}, {1024, 1024}, 16, pictures));
}

}  // namespace braid::net::enhancer_test
