// Clients that are slow to send, that leave in the midst of a request or of its answer, and what
// the log and the counters say of them.
#include <gmock/gmock.h>

#include "serve/http/read_limit.h"
#include "test_server.h"

namespace braid::serve::late_clients_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

TEST(DueTime, OfAHeadIsFixed) {
  const Clock::time_point began{};
  const DueTime head{.began = began, .time = seconds(15), .received = 10'000'000};
  for (const auto passed : {0, 1, 14})
    EXPECT_EQ(head.next(began + seconds(passed)), began + seconds(15));
}

// No silence of a minute, and no rate below 64 KiB per second behind the first minute.
TEST(DueTime, OfABodyGrowsWithWhatHasCome) {
  const Clock::time_point began{};
  const auto due = [&](std::uint64_t received, int passed) {
    const DueTime body{
        .began = began, .time = seconds(60), .slowest = 64 << 10, .received = received};
    return body.next(began + seconds(passed)) - began;
  };
  EXPECT_EQ(due(0, 0), seconds(60));
  EXPECT_EQ(due(1000, 50), seconds(60)) << "a drip brings nothing";
  EXPECT_EQ(due(10 * (64 << 10), 30), seconds(70)) << "ten seconds for 640 KiB";
  EXPECT_EQ(due(32 << 20, 5), seconds(65)) << "no longer silence, however much came at once";
  EXPECT_EQ(due(32 << 20, 600), seconds(572)) << "the longest time of 32 MiB";
}

// What a server has logged of its requests.
class Logged {
 public:
  std::function<void(const RequestLog&)> write() {
    return [this](const RequestLog& line) {
      const std::scoped_lock lock(mutex_);
      lines_.push_back(line);
    };
  }
  // The first line with a status, once it is there.
  RequestLog line_of(int status) {
    RequestLog found;
    EXPECT_TRUE(wait_until([&] {
      const std::scoped_lock lock(mutex_);
      const auto line = std::ranges::find(lines_, status, &RequestLog::status);
      if (line == lines_.end()) return false;
      found = *line;
      return true;
    })) << "no line has status "
        << status;
    return found;
  }
  std::size_t num_lines() {
    const std::scoped_lock lock(mutex_);
    return lines_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<RequestLog> lines_;
};

constexpr auto kTime = milliseconds(300);
const std::string kHalf =
    "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    "content-length: 100\r\n";

void expect_counted(const Server& server, const std::string& outcome) {
  EXPECT_THAT(server.ask("GET /metrics"),
              HasSubstr("braid_requests_total{outcome=\"" + outcome + "\"} 1\n"));
}

TEST(LateClients, HearThatTheirBodyCameTooSlowly) {
  Logged logged;
  FakeEngine engine;
  const Server server(engine, {}, {.body_time = kTime, .log = logged.write()});
  const auto answer = RawClient(server.port()).asked(kHalf + "\r\n{");
  EXPECT_EQ(status_of(answer), 408) << answer;
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  const auto error = json_of(answer)["error"];
  EXPECT_EQ(error["code"], "request_timeout");
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_THAT(error["message"].get<std::string>(), StartsWith("the body came too slowly: "));
  const auto line = logged.line_of(408);
  EXPECT_EQ(line.path, "/v1/jobs");
  EXPECT_EQ(line.client, "127.0.0.1");
  EXPECT_GE(line.seconds, 0.3);
  expect_counted(server, "invalid");
}

// It has been asked for, or comes in chunks that only seem to make progress.
TEST(LateClients, GainNothingByADrip) {
  FakeEngine engine;
  const Server server(engine, {}, {.body_time = kTime});
  const auto began = Clock::now();
  RawClient asked(server.port());
  asked.send(kHalf + "expect: 100-continue\r\n\r\n");
  ASSERT_TRUE(asked.read_until("100 Continue\r\n\r\n"));
  asked.forget();
  while (!asked.has_more() && Clock::now() < began + seconds(60)) {
    asked.send(" ");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(asked.read_until("request_timeout"));
  RawClient chunks(server.port());
  chunks.send(
      "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
      "transfer-encoding: chunked\r\n\r\n");
  while (!chunks.has_more() && Clock::now() < began + seconds(60)) {
    chunks.send("1\r\n \r\n");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_TRUE(chunks.read_until("request_timeout"));
}

// Whenever the limit ends: between two of its bytes, or while one is being read.
TEST(LateClients, CannotKeepAHeadOpenByADrip) {
  FakeEngine engine;
  const Server server(engine, {}, {.head_time = milliseconds(20)});
  for (int i = 0; i < 20; ++i) {
    RawClient client(server.port());
    client.send("GET /livez HTTP/1.1\r\n");
    const auto until = Clock::now() + seconds(60);
    while (!client.has_more() && Clock::now() < until) {
      client.send("a: b\r\n");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    EXPECT_TRUE(client.read_until("request_timeout")) << client.received();
  }
}

TEST(LateClients, MayTakeLongerWhileTheyMakeProgress) {
  FakeEngine engine;
  const Server server(engine, {}, {.body_time = milliseconds(600)});
  const std::string json = R"({"prompt": "a"})", piece(64 << 10, ' ');
  constexpr int kPieces = 8;
  RawClient client(server.port());
  client.send(
      "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
      "connection: close\r\ncontent-length: " +
      std::to_string(kPieces * piece.size() + json.size()) + "\r\n\r\n");
  for (int i = 0; i < kPieces; ++i) {
    client.send(piece);
    std::this_thread::sleep_for(milliseconds(100));  // all together take longer than a silence may
  }
  client.send(json);
  EXPECT_EQ(status_of(client.read_all()), 202);
}

TEST(LateClients, HearThatTheirHeadDidNotEnd) {
  Logged logged;
  FakeEngine engine;
  const Server server(engine, {}, {.head_time = kTime, .log = logged.write()});
  EXPECT_EQ(RawClient(server.port()).asked(""), "") << "a connection that rests";
  const auto answer = RawClient(server.port()).asked("GET /livez HTTP/1.1\r\nhost: loc");
  EXPECT_EQ(status_of(answer), 408) << answer;
  EXPECT_THAT(answer, HasSubstr("the head should be complete within 0.3 s"));
  const auto line = logged.line_of(408);
  EXPECT_EQ(line.client, "127.0.0.1");
  EXPECT_GE(line.seconds, 0.3);
  EXPECT_EQ(logged.num_lines(), 1u) << "none for the one that rested";
}

TEST(LateClients, AreLoggedAndCountedThatLeaveInMidBody) {
  Logged logged;
  FakeEngine engine;
  const Server server(engine, {}, {.log = logged.write()});
  RawClient client(server.port());
  client.send(kHalf + "expect: 100-continue\r\n\r\n");
  ASSERT_TRUE(client.read_until("100 Continue"));
  client.send("{");
  client.leave();
  EXPECT_EQ(logged.line_of(499).path, "/v1/jobs");
  expect_counted(server, "cancelled");
}

TEST(LateClients, AreLoggedThatLeaveInMidHead) {
  Logged logged;
  FakeEngine engine;
  const Server server(engine, {}, {.log = logged.write()});
  RawClient rests(server.port()), leaves(server.port()), babbles(server.port());
  rests.leave();
  leaves.send("GET /livez HT");
  leaves.leave();
  EXPECT_EQ(logged.line_of(499).client, "127.0.0.1");
  EXPECT_EQ(status_of(babbles.asked("\x16\x03\x01 what is this\r\n\r\n")), 400);
  EXPECT_EQ(logged.line_of(400).client, "127.0.0.1");
  EXPECT_EQ(logged.num_lines(), 2u);
}

// 42 MB: more than sockets hold.
TEST(LateClients, AreLoggedWithWhatWasWrittenToThem) {
  for (const std::string more : {"", R"(, "stream": true)"}) {
    Logged logged;
    FakeEngine engine;
    const Server server(engine, {}, {.log = logged.write()});
    RawClient client(server.port());
    client.send(
        Server::request_text("POST /v1/images/generations", "",
                             R"({"prompt": "large", "size": "16x16", "n": 10)" + more + "}"));
    ASSERT_TRUE(client.read_until("b64_json"));
    client.leave();
    const auto line = logged.line_of(499);
    // A stream counts whole pieces, if the end is read before the write fails.
    EXPECT_GT(line.bytes, more.empty() ? 10'000u : 100u) << more;
    EXPECT_LT(line.bytes, 41'000'000u) << more;
    EXPECT_EQ(logged.num_lines(), 1u) << more;
  }
}

TEST(LateClients, AreLoggedThatDoNotReadInTime) {
  Logged logged;
  FakeEngine engine;
  const Server server(engine, {}, {.write_time = milliseconds(1), .log = logged.write()});
  const auto size = json_of(server.ask("GET /openapi.json")).dump().size();
  const RawClient client(server.port());
  for (int i = 0; i < 400; ++i) client.send(Server::request_text("GET /openapi.json", "", ""));
  const auto line = logged.line_of(499);
  EXPECT_EQ(line.path, "/openapi.json");
  EXPECT_LT(line.bytes, 4 * size);
}

}  // namespace braid::serve::late_clients_test
