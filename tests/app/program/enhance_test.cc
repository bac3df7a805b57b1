// `--enhancer` from the command line to the picture's text, and `braid serve` with one.
#include <csignal>

#include "image/png.h"
#include "net/made_certificate.h"
#include "net/stand_in_chat.h"
#include "serving.h"

namespace braid::enhance_test {

using net::StandInChat;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class EnhancedPictures : public Serve {
 protected:
  std::string text_of_file(const std::string& name, const std::string& key) const {
    for (const auto& [known, value] : read_png_text(read_file(folder_ / name), name))
      if (known == key) return value;
    return "";
  }

  const net::SetVariable caches_{"XDG_CACHE_HOME", (folder_ / "caches").string()};
};

TEST_F(EnhancedPictures, ShowWhatTheEnhancerWrote) {
  StandInChat chat("a red circle on a blue background");
  const auto own = draw({"a circle", "--enhancer", chat.url() + "/v1", "-o", "own.png"});
  ASSERT_EQ(own.exit_code, 0) << own.err;
  EXPECT_EQ(own.out, "own.png\n");
  EXPECT_THAT(own.err, AllOf(HasSubstr("asking the enhancer at 127.0.0.1"),
                             HasSubstr("prompt: a red circle on a blue background\n")));
  EXPECT_EQ(text_of_file("own.png", "prompt"), "a red circle on a blue background");
  EXPECT_EQ(text_of_file("own.png", "original_prompt"), "a circle");
  EXPECT_THAT(braid({"info", "own.png"}).out, HasSubstr("original_prompt"));
  EXPECT_EQ(draw({"a red circle on a blue background", "-o", "other.png"}).exit_code, 0);
  EXPECT_EQ(decode_png(read_file(folder_ / "own.png"), "own").rgb,
            decode_png(read_file(folder_ / "other.png"), "other").rgb);
  EXPECT_EQ(text_of_file("other.png", "original_prompt"), "");
}

TEST_F(EnhancedPictures, AreAskedForOnce) {
  StandInChat chat("a red circle");
  for (int k = 0; k < 2; ++k)
    ASSERT_EQ(draw({"a circle", "--enhancer", chat.url(), "-q"}).exit_code, 0);
  EXPECT_EQ(chat.questions().size(), 1u);
}

TEST_F(EnhancedPictures, HaveAPromptEach) {
  StandInChat chat([](const auto& asked) {
    return StandInChat::completion("drawn " + asked.json()["messages"][1]["content"].dump());
  });
  write("prompts.txt", "one\ntwo\n");
  const auto finished = draw({"--prompt-file", "prompts.txt", "-n", "2", "--json", "--enhancer",
                              chat.url(), "-o", "all/"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto pictures = nlohmann::json::parse(finished.out)["files"];
  ASSERT_EQ(pictures.size(), 4u);
  EXPECT_EQ(pictures[0]["original_prompt"], "one");
  EXPECT_EQ(pictures[1]["prompt"], "drawn \"one\"");
  EXPECT_EQ(pictures[3]["prompt"], "drawn \"two\"");
  EXPECT_EQ(pictures[3]["original_prompt"], "two");
}

TEST_F(EnhancedPictures, MayTakeTheShapeOfTheAnswer) {
  StandInChat chat(R"({"rewritten_prompt": "a red circle", "wh_ratio": "1:2"})");
  ASSERT_EQ(braid({"generate", "a circle", "--steps", "1", "--enhancer", chat.url(), "-o", "a.png"})
                .exit_code,
            0);
  EXPECT_EQ(text_of_file("a.png", "size"), "96x192") << "the model's is 128 x 128";
  ASSERT_EQ(draw({"a circle", "--enhancer", chat.url(), "-o", "b.png"}).exit_code, 0);
  EXPECT_EQ(text_of_file("b.png", "size"), "32x32") << "as --size says";
}

TEST_F(EnhancedPictures, AreNotDrawnWithoutAnAnswer) {
  const auto refused = [&](const std::string& url, const std::string& words,
                           const std::vector<std::string>& more = {}) {
    std::vector<std::string> line = {"generate", "a",          "--size", "32x32", "--steps",
                                     "1",        "--enhancer", url,      "-q"};
    line.insert(line.end(), more.begin(), more.end());
    expect_refusal(braid(line), 1, words);
  };
  refused("http://127.0.0.1:1", "the prompt was not enhanced: cannot reach 127.0.0.1:1");
  StandInChat slow([](const auto&) { return StandInChat::Reply{.is_held = true}; });
  refused(slow.url(), "did not answer within 0.2 s", {"--enhancer-deadline", "0.2"});
  StandInChat half(R"({"rewritten_prompt": "a red)");
  refused(half.url(), "answers nonsense: JSON without an end");
  StandInChat boxes(R"({"prompt": "a <b>", "boxes": [{"id": "b", "bbox": [0, 0, 9, 9],
                        "desc": "c"}]})");
  refused(boxes.url(), "its answer cannot be drawn: this model takes no boxes");
  refused(boxes.url(), "its answer cannot be drawn: this model takes no boxes");
  EXPECT_EQ(boxes.questions().size(), 2u) << "such an answer is not kept";
}

TEST_F(EnhancedPictures, AreStoppedWhileTheEnhancerThinks) {
  StandInChat slow([](const auto&) { return StandInChat::Reply{.is_held = true}; });
  Subprocess waiting({.arguments = {"generate", "a", "--enhancer", slow.url()}, .folder = folder_});
  slow.wait_for_questions(2);
  waiting.send(SIGINT);
  const auto finished = waiting.finish();
  EXPECT_EQ(finished.exit_code, 130) << finished.err;
  EXPECT_FALSE(files().contains("braid.png"));
}

TEST_F(EnhancedPictures, SendTheKeyOfAFileAndTheTextOfAnother) {
  StandInChat chat("a red circle");
  write("key.txt", "\xef\xbb\xbfthe-secret\nsecond line\n");
  write("system.txt", "rewrite it");
  const auto finished =
      draw({"a circle", "-v", "--enhancer", chat.url(), "--enhancer-key-file", "key.txt",
            "--enhancer-system", "system.txt", "--enhancer-model", "mine"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto asked = chat.all();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].key, "Bearer the-secret");
  EXPECT_EQ(asked[0].json()["model"], "mine");
  EXPECT_EQ(asked[0].json()["messages"][0]["content"], "rewrite it");
  EXPECT_THAT(finished.err, Not(HasSubstr("the-secret")));
}

TEST_F(EnhancedPictures, HaveFlagsThatGoTogether) {
  expect_bad_input({"generate", "a", "--enhancer", "localhost"}, "--enhancer should be an address");
  expect_bad_input({"generate", "a", "--enhancer-model", "m"}, "--enhancer-model needs --enhancer");
  expect_bad_input({"serve", "--enhancer-key-file", "k"}, "--enhancer-key-file needs --enhancer");
  expect_bad_input({"generate", "a", "--enhancer", "http://a", "--enhancer-deadline", "0"},
                   "--enhancer-deadline should be seconds");
  write("empty.txt", "\n");
  expect_bad_input({"generate", "a", "--enhancer", "http://a", "--enhancer-key-file", "empty.txt"},
                   "the key should be the first line of empty.txt");
  expect_bad_input({"generate", "a", "--enhancer", "http://a", "--enhancer-system", "missing.txt"},
                   "missing.txt");
  write("prompts.txt", "a\n");
  write("boxes.json", "[]");
  expect_bad_input({"generate", "--prompt-file", "prompts.txt", "--boxes", "boxes.json",
                    "--enhancer", "http://a"},
                   "--boxes are of one prompt");
}

TEST_F(EnhancedPictures, AreServedToThoseWhoAsk) {
  StandInChat chat("a red circle on a blue background");
  start({"--enhancer", chat.url()});
  const auto answer = nlohmann::json::parse(
      ask("POST /v1/images/generations",
          R"({"prompt": "a circle", "enhance": true, "size": "32x32", "steps": 2, "seed": 3})"));
  ASSERT_TRUE(answer.contains("data")) << answer;
  EXPECT_EQ(answer["data"][0]["revised_prompt"], "a red circle on a blue background");
  const auto png = serve::bytes_of_base64(answer["data"][0]["b64_json"].get<std::string>(), "");
  EXPECT_THAT(read_png_text(png, ""), Contains(Pair("original_prompt", "a circle")));
  const auto generated = braid({"generate", "a circle", "--enhancer", chat.url(), "--size", "32x32",
                                "--steps", "2", "--seed", "3", "-o", "own.png"});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_EQ(png, read_file(folder_ / "own.png"));
  EXPECT_EQ(pictures_for(R"({"prompt": "a circle", "size": "32x32", "steps": 1})").size(), 1u);
  EXPECT_EQ(chat.questions().size(), 2u) << "the server's and generate's";
  EXPECT_EQ(stop().exit_code, 0);
}

TEST_F(EnhancedPictures, AreRefusedByAServerWhoseEnhancerIsGone) {
  start({"--enhancer", "http://127.0.0.1:1"});
  const auto answer = ask("POST /v1/jobs", R"({"prompt": "a", "enhance": true, "size": "32x32"})");
  EXPECT_THAT(answer, AllOf(HasSubstr("cannot reach 127.0.0.1:1"), HasSubstr("enhancer_failed")));
  EXPECT_EQ(nlohmann::json::parse(ask("GET /v1/jobs"))["jobs"].size(), 0u);
  EXPECT_EQ(stop().exit_code, 0);
}

}  // namespace braid::enhance_test
