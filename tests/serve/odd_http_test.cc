// The server and requests that are ambiguous, long answers, and clients that do not let go.
#include <gmock/gmock.h>

#include <future>

#include "test_server.h"

namespace braid::serve::odd_http_test {

using testing::HasSubstr;
using testing::Not;

const std::string kSmall = R"({"prompt": "a", "size": "16x16", "seed": 5})";

// What a proxy may read as another request, or check by the other of two headers (RFC 9112, 6.3).
TEST(OddHttp, RefusesWhatIsAmbiguous) {
  FakeEngine engine;
  const Server server(engine, {.origins = {"https://friend.example"}});
  const std::string next = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
  for (const std::string odd :
       {"transfer-encoding: xchunked", "transfer-encoding: chunked, identity",
        "transfer-encoding: gzip, chunked", "transfer-encoding: gzip\r\ntransfer-encoding: chunked",
        "content-length: 5\r\ntransfer-encoding: chunked", "content-length: 5\r\ncontent-length: 6",
        "origin: https://evil.example\r\norigin: https://friend.example",
        "authorization: Bearer a\r\nauthorization: Bearer b",
        "content-type: text/plain\r\ncontent-type: application/json"}) {
    RawClient client(server.port());
    client.send("POST /sdapi/v1/skip HTTP/1.1\r\nhost: localhost\r\n" + odd + "\r\n\r\n0\r\n\r\n" +
                next);
    const auto all = client.read_all();
    EXPECT_EQ(status_of(all), 400) << odd;
    EXPECT_THAT(all, Not(HasSubstr("alive"))) << odd;
  }
  EXPECT_THAT(RawClient(server.port()).asked("GET /v1/models HTTP/1.1\r\n\r\n"),
              HasSubstr("there is no Host header"));
}

// Some clients end a body with an empty line (RFC 9112, section 2.2).
TEST(OddHttp, IgnoresEmptyLinesBeforeARequest) {
  FakeEngine engine;
  const Server server(engine);
  const auto live = Server::request_text("GET /livez", "connection: close\r\n", "");
  for (const std::string before : {"\r\n", "\r\n\r\n\r\n"})
    EXPECT_THAT(RawClient(server.port()).asked(before + live), HasSubstr("alive"));
  RawClient ahead(server.port());
  const auto drawn = Server::request_text("POST /v1/images/generations", "", kSmall);
  const auto all = ahead.asked(drawn + "\r\n" + drawn + "\r\n" + live);
  EXPECT_THAT(all, HasSubstr("b64_json"));
  EXPECT_THAT(all, HasSubstr("alive"));
  EXPECT_THAT(all, Not(HasSubstr("bad_request")));
  for (const std::string before : {"\r", "\n", " \r\n"})
    EXPECT_EQ(status_of(RawClient(server.port()).asked(before + live)), 400) << "no empty line";
}

TEST(OddHttp, RestsBehindAnEmptyLine) {
  FakeEngine engine;
  const Server server(engine, {}, {.head_time = std::chrono::milliseconds(400)});
  RawClient rests(server.port()), begins(server.port());
  rests.send(Server::request_text("POST /v1/images/generations", "", kSmall));
  ASSERT_TRUE(rests.read_until("\"size\":\"16x16\"}"));
  for (const std::string half : {"\r", "\n"}) {
    rests.send(half);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  begins.send("\r\n");
  EXPECT_EQ(begins.read_all(), "") << "closed after its time";
  rests.send(Server::request_text("GET /livez", "connection: close\r\n", ""));
  EXPECT_THAT(rests.read_all(), HasSubstr("alive"));
}

// A client that asked for the end of its connection, and then does not close its own side.
TEST(OddHttp, ClosesConnectionsOfClientsThatDoNot) {
  FakeEngine engine;
  const Server server(engine);
  const RawClient client(server.port());
  client.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n", kSmall));
  RawClient other(server.port());
  other.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n", kSmall));
  EXPECT_THAT(other.read_all(), HasSubstr("b64_json"));
  const auto until = Clock::now() + std::chrono::seconds(5);
  while (server.http().num_connections() > 0 && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(server.http().num_connections(), 0);
}

// Ten pictures of 3 MB take a fraction of a second to write as text.
TEST(OddHttp, AnswersOthersWhileItWritesALargeAnswer) {
  for (const std::string more : {"", R"(, "stream": true)"}) {
    FakeEngine engine(FakeEngine::Steps::kHeld);
    std::promise<void> over;
    const Server server(engine, {}, {}, {.on_end = [&](const Job&) { over.set_value(); }});
    RawClient large(server.port());
    const std::string json = R"({"prompt": "large", "size": "16x16", "n": 10)" + more + "}";
    large.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n", json));
    engine.wait_until_called(1);
    if (!more.empty()) {
      ASSERT_TRUE(large.read_until("text/event-stream"));
    }
    large.forget();
    engine.finish();
    over.get_future().wait();
    EXPECT_EQ(status_of(server.ask("GET /livez")), 200);
    EXPECT_FALSE(large.has_more() && more.empty()) << "the answer was written first";
    const auto all = large.read_all();
    std::size_t count = 0;
    for (auto at = all.find("\"b64_json\":\""); at != all.npos;
         at = all.find("\"b64_json\":\"", at + 1))
      ++count;
    EXPECT_EQ(count, 10u);
    EXPECT_GT(all.size(), std::size_t(40) << 20);
  }
}

// Bodies take memory: 16 large ones at once, and small ones besides.
TEST(OddHttp, ReadsFewLargeBodiesAtOnce) {
  FakeEngine engine;
  const Server server(engine);
  const std::string large =
      "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
      "content-length: 300000\r\nexpect: 100-continue\r\n\r\n";
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(large);
    ASSERT_TRUE(clients.back()->read_until("100 Continue"));
  }
  EXPECT_THAT(RawClient(server.port()).asked(large), HasSubstr("too_many_large_requests"));
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", kSmall)), 202);
  clients.clear();
  while (server.http().num_connections() > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  RawClient next(server.port());
  next.send(large);
  EXPECT_TRUE(next.read_until("100 Continue"));
}

// A reader that is slow, but reads: the time limit of writing grows with the answer.
TEST(OddHttp, GivesLongAnswersMoreTime) {
  FakeEngine engine;
  const Server server(engine, {}, {.write_time = std::chrono::milliseconds(200)});
  RawClient slow(server.port());
  const std::string json = R"({"prompt": "large", "size": "16x16", "n": 10})";
  slow.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n", json));
  ASSERT_TRUE(slow.read_until("b64_json"));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_GT(slow.read_all().size(), std::size_t(40) << 20) << "more than sockets hold";
}

}  // namespace braid::serve::odd_http_test
