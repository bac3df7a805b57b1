// What a chat server may do wrong, each with its own sentence.
#include "net/enhancer/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "message_of.h"
#include "net/made_certificate.h"
#include "net/stand_in_chat.h"
#include "net/stand_in_hub.h"

namespace braid::net::chat_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Kind = EnhancerFailure::Kind;
using Reply = StandInChat::Reply;
using namespace std::chrono_literals;

std::string asked(const ChatServer& server, const std::stop_token& stop = {}) {
  Chat chat(server, stop);
  return chat.answer({{"model", chat.model()}, {"messages", Json::array()}});
}

std::string failure(Kind kind, const ChatServer& server) {
  try {
    ADD_FAILURE() << "it answered: " << asked(server);
  } catch (const EnhancerFailure& failure) {
    EXPECT_EQ(int(failure.kind()), int(kind)) << failure.what();
    EXPECT_THAT(failure.what(), testing::StartsWith("the prompt was not enhanced: "));
    return failure.what();
  }
  return "";
}

std::string failure_of(Kind kind, const Reply& reply, const std::string& key = "") {
  StandInChat chat([=](const auto&) { return reply; });
  return failure(kind, {.url = chat.url(), .key = key});
}

TEST(Chat, AsksTheFirstModelOfTheList) {
  StandInChat chat("hello");
  EXPECT_EQ(asked({.url = chat.url()}), "hello");
  const auto all = chat.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].method + all[0].path, "GET/v1/models");
  EXPECT_EQ(all[1].method + all[1].path, "POST/v1/chat/completions");
  EXPECT_EQ(all[1].json()["model"], "stand-in");
  EXPECT_EQ(all[1].key, "");
}

TEST(Chat, AsksTheModelThatIsNamedWithoutAList) {
  StandInChat chat("hello");
  EXPECT_EQ(asked({.url = chat.url(), .model = "mine", .key = "secret-key"}), "hello");
  const auto all = chat.all();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].json()["model"], "mine");
  EXPECT_EQ(all[0].key, "Bearer secret-key");
}

TEST(Chat, TakesContentInParts) {
  const auto reply = Reply{.body = R"({"choices": [{"message": {"content":
      [{"type": "text", "text": "a fox"}, {"type": "text", "text": " in snow"}]}}]})"};
  StandInChat chat([=](const auto&) { return reply; });
  EXPECT_EQ(asked({.url = chat.url()}), "a fox in snow");
}

TEST(Chat, NamesTheHostThatIsGone) {
  EXPECT_THAT(failure(Kind::kGone, {.url = "http://127.0.0.1:1", .model = "m"}),
              HasSubstr("cannot reach 127.0.0.1:1"));
}

TEST(Chat, GivesASlowServerUntilTheDeadline) {
  StandInChat chat([](const auto&) { return Reply{.is_held = true}; });
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(failure(Kind::kLate, {.url = chat.url(), .deadline = 300ms}),
              HasSubstr("did not answer within 0.3 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

// Its client's place is free for others then: libcurl alone would look once a second.
TEST(Chat, IsStoppedAtOnceWhileItWaits) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 3; ++i) {
    StandInChat chat([](const auto&) { return Reply{.is_held = true}; });
    std::stop_source stop;
    Clock::time_point stopped;
    std::jthread stopper([&] {
      chat.wait_for_questions(2);
      std::this_thread::sleep_for(20ms);  // the client has probably begun to wait
      stopped = Clock::now();
      stop.request_stop();
    });
    EXPECT_THROW(asked({.url = chat.url()}, stop.get_token()), Cancelled);
    stopper.join();
    EXPECT_LT(Clock::now() - stopped, 500ms);
  }
}

TEST(Chat, TellsOfAConnectionThatIsCut) {
  auto reply = StandInChat::completion(std::string(1000, 'a'));
  reply.is_cut = true;
  EXPECT_THAT(failure_of(Kind::kGone, reply), HasSubstr("was cut"));
}

TEST(Chat, TellsWhatTheServerRefuses) {
  const auto words = [](int status, const std::string& key = "") {
    return failure_of(Kind::kRefused,
                      {.status = status, .body = R"({"error": {"message": "its own words"}})"},
                      key);
  };
  EXPECT_THAT(words(401), HasSubstr("asks for a key (401): its own words"));
  EXPECT_THAT(words(401, "the-secret"),
              AllOf(HasSubstr("refuses the key (401)"), Not(HasSubstr("the-secret"))));
  EXPECT_THAT(words(404), HasSubstr("has no chat completions, or no such model (404)"));
  EXPECT_THAT(words(400), HasSubstr("refuses the question (400): its own words"));
}

// It may answer the same question later.
TEST(Chat, TellsThatTheServerIsBusy) {
  for (const int status : {500, 502, 503})
    EXPECT_THAT(failure_of(Kind::kBusy, {.status = status,
                                         .body = R"({"error": {"message": "its own words"}})"}),
                HasSubstr(text_of("fails (", status, "): its own words")));
  EXPECT_THAT(failure_of(Kind::kBusy, {.status = 429, .headers = "retry-after: 7\r\n"}),
              HasSubstr("is busy (429); it asks to wait 7 s"));
}

TEST(Chat, ShowsTheServersWordsOnOneShortLine) {
  const auto words = std::string("a\\nb\\u001b[31m\\u2028c") + std::string(5000, 'x');
  const auto sentence =
      failure_of(Kind::kBusy, {.status = 500, .body = "{\"error\": \"" + words + "\"}"});
  EXPECT_THAT(sentence, HasSubstr("a b [31m cxxx"));
  EXPECT_LT(sentence.size(), 500u);
  EXPECT_EQ(sentence.find_first_of("\n\x1b"), sentence.npos);
}

TEST(Chat, FollowsNoRedirectToAnotherOrigin) {
  StandInChat other("stolen");
  for (const int status : {301, 302, 303, 307, 308}) {
    const auto sentence = failure_of(
        Kind::kRefused, {.status = status, .headers = "location: " + other.url() + "/v1\r\n"},
        "the-secret");
    EXPECT_THAT(sentence, HasSubstr("redirects to another address")) << status;
  }
  EXPECT_TRUE(other.all().empty()) << "neither the key nor the prompt went there";
}

TEST(Chat, FollowsARedirectOfItsOwnOrigin) {
  StandInChat chat([](const StandInChat::Asked& asked) {
    if (asked.path == "/elsewhere") return StandInChat::completion("from elsewhere");
    return Reply{.status = 308, .headers = "location: /elsewhere\r\n"};
  });
  EXPECT_EQ(asked({.url = chat.url(), .key = "the-secret"}), "from elsewhere");
  EXPECT_EQ(chat.questions().back().key, "Bearer the-secret");
}

TEST(Chat, TellsOfACertificateThatIsNotTrusted) {
  const TemporaryFolder folder;
  const SetVariable none("CURL_CA_BUNDLE", "");
  const StandInHub server(made_certificate(folder.path(), "IP:127.0.0.1"));
  EXPECT_THAT(failure(Kind::kGone, {.url = server.endpoint()}),
              HasSubstr("the certificate of 127.0.0.1"));
  EXPECT_TRUE(server.requests().empty());
}

TEST(Chat, RefusesWhatIsNoAnswer) {
  const auto says = [](const std::string& body) {
    return failure_of(Kind::kNonsense, {.body = body});
  };
  EXPECT_THAT(says("<html>Log in</html>"), HasSubstr("does not answer with JSON: <html>Log in"));
  EXPECT_THAT(says(""), HasSubstr("does not answer with JSON"));
  for (const char* const body : {"{}", "[]", "7", R"({"choices": 3})", R"({"choices": []})",
                                 R"({"choices": [[]]})", R"({"choices": [{"text": "a"}]})"})
    EXPECT_THAT(says(body), HasSubstr("answers without a message")) << body;
  const auto deep = std::string(100'000, '[');
  EXPECT_THAT(says(R"({"choices": )" + deep), HasSubstr("does not answer with JSON"));
}

TEST(Chat, RefusesWhatIsCutOffOrFiltered) {
  EXPECT_THAT(failure_of(Kind::kNonsense, StandInChat::completion("half a pro", "length")),
              HasSubstr("is cut off: it reached its limit of tokens"));
  EXPECT_THAT(failure_of(Kind::kRefused, StandInChat::completion("", "content_filter")),
              HasSubstr("filters the answer out"));
  EXPECT_THAT(failure_of(Kind::kRefused,
                         {.body = R"({"choices": [{"message": {"refusal": "I cannot"}}]})"}),
              HasSubstr("refuses: I cannot"));
}

TEST(Chat, BoundsAnswers) {
  EXPECT_THAT(failure_of(Kind::kNonsense, {.body = std::string(9 << 20, ' ')}),
              HasSubstr("has more than 8388608 bytes"));
}

TEST(Chat, NeedsAModel) {
  StandInHub no_list;  // an HTTP server without a list of models
  EXPECT_THAT(failure(Kind::kRefused, {.url = no_list.endpoint()}), HasSubstr("(404)"));
}

TEST(ChatAddress, IsThatOfTheServer) {
  for (const char* const url :
       {"http://localhost:8080", "http://localhost:8080/", "http://localhost:8080/v1",
        "http://localhost:8080/v1/", "http://localhost:8080/v1/chat/completions"})
    EXPECT_EQ(chat_address("--enhancer", url), "http://localhost:8080") << url;
  EXPECT_EQ(chat_address("--enhancer", "https://example.org/api/v1"), "https://example.org/api");
  for (const char* const url : {"", "localhost:8080", "ftp://localhost", "http://a/v1?key=b"})
    EXPECT_THROW(chat_address("--enhancer", url), InputError) << url;
}

}  // namespace braid::net::chat_test
