// What clients hear of requests that do not end well, and for how long.
#include <gmock/gmock.h>

#include <atomic>

#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::endings_test {

using testing::HasSubstr;
using testing::Not;

const std::string kOpenAi = "POST /v1/images/generations", kWebUi = "POST /sdapi/v1/txt2img";

std::string prompt(const std::string& text) { return R"({"prompt": ")" + text + "\"}"; }

// A client that waits for its picture.
class Waiting {
 public:
  Waiting(const Server& server, const std::string& line) : client_(server.port()) {
    client_.send(Server::request_text(line, "connection: close\r\n", prompt("a")));
  }
  std::string answer() { return client_.read_all(); }

 private:
  RawClient client_;
};

void wait_for_jobs(Server& server, int waiting) {
  EXPECT_TRUE(wait_until([&] { return server.service().status().waiting >= waiting; }));
}

// OpenAI's clients post again after 409 and 500: a cancelled request would come back.
TEST(Endings, AskForNoRepetitionThatWouldEndTheSame) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  Waiting client(server, kOpenAi);
  engine.wait_until_called(1);
  server.service().cancel(server.service().running());
  const auto cancelled = client.answer();
  EXPECT_EQ(status_of(cancelled), 409);
  EXPECT_THAT(cancelled, HasSubstr("x-should-retry: false"));
  const auto failed = server.ask(kOpenAi, "", prompt("fails"));
  EXPECT_EQ(status_of(failed), 500);
  EXPECT_THAT(failed, HasSubstr("x-should-retry: false"));
}

TEST(Endings, SendClientsElsewhereWhenTheServerStops) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  Waiting running(server, kOpenAi);
  engine.wait_until_called(1);
  Waiting queued(server, kOpenAi), web_ui(server, kWebUi);
  wait_for_jobs(server, 2);
  server.service().stop();
  for (auto* const client : {&running, &queued, &web_ui}) {
    const auto answer = client->answer();
    EXPECT_EQ(status_of(answer), 503) << answer;
    EXPECT_THAT(answer, HasSubstr("retry-after: 5"));
    EXPECT_THAT(answer, Not(HasSubstr("x-should-retry")));
  }
  const auto late = server.ask(kOpenAi, "", prompt("a"));
  EXPECT_EQ(status_of(late), 503);
  EXPECT_THAT(late, HasSubstr("retry-after: 5"));
}

TEST(Endings, SendClientsElsewhereWhenTheEngineIsLost) {
  FakeEngine engine;
  Server server(engine);
  const auto answer = server.ask(kOpenAi, "", prompt("is lost"));
  EXPECT_EQ(status_of(answer), 503);
  EXPECT_THAT(answer, HasSubstr("rank 1 is gone"));
  EXPECT_EQ(status_of(server.ask("GET /readyz")), 503);
}

TEST(Endings, AreToldWhenNoMoreIsAcceptedWhereTheEngineIsLost) {
  FakeEngine engine;
  const Service* service = nullptr;
  std::atomic<int> ends = 0;
  const auto look = [&](const Job&) {
    EXPECT_EQ(service->status().readiness, Readiness::kStopped);
    ++ends;
  };
  Server server(engine, {}, {}, {.on_end = look});
  service = &server.service();
  EXPECT_EQ(status_of(server.ask(kOpenAi, "", prompt("is lost"))), 503);
  EXPECT_TRUE(wait_until([&] { return ends == 1; }));
}

TEST(Endings, ReachReadersOfAJobThatIsCancelledInTheQueue) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  server.ask("POST /v1/jobs", "", prompt("a"));
  const std::string id = json_of(server.ask("POST /v1/jobs", "", prompt("b")))["id"];
  RawClient reader(server.port());
  reader.send(Server::request_text("GET /v1/jobs/" + id + "/events", "", ""));
  ASSERT_TRUE(reader.read_until("event: queued"));
  EXPECT_EQ(json_of(server.ask("DELETE /v1/jobs/" + id))["state"], "cancelled");
  EXPECT_TRUE(reader.read_until("event: cancelled"));
}

TEST(Endings, ReachReadersThatClaimToKnowMore) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  const std::string id = json_of(server.ask("POST /v1/jobs", "", prompt("a")))["id"];
  RawClient reader(server.port());
  reader.send(Server::request_text("GET /v1/jobs/" + id + "/events?after=5000", "", ""));
  ASSERT_TRUE(reader.read_until("text/event-stream"));
  engine.finish();
  EXPECT_TRUE(reader.read_until("event: done"));
  EXPECT_THAT(reader.received(), Not(HasSubstr("event: queued")));
}

// Nobody has to ask for another picture.
TEST(Endings, AreForgottenAfterTheirTime) {
  FakeEngine engine;
  Server server(
      engine, {}, {},
      {.keep = {.time = std::chrono::seconds(0)}, .heartbeat = std::chrono::milliseconds(10)});
  const std::string path =
      "/v1/jobs/" + std::string(json_of(server.ask("POST /v1/jobs", "", prompt("a")))["id"]);
  std::string answer;
  EXPECT_TRUE(wait_until([&] {
    answer = server.ask("GET " + path);
    return status_of(answer) == 404;
  }));
  EXPECT_THAT(answer, HasSubstr("it ended long ago"));
  for (const auto& line : {"DELETE " + path, "GET " + path + "/events"})
    EXPECT_EQ(status_of(server.ask(line)), 404) << line;
}

}  // namespace braid::serve::endings_test
