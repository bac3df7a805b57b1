// The server and requests that are ambiguous, long answers, and clients that do not let go.
#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::odd_http_test {

using testing::HasSubstr;
using testing::Not;

const std::string kSmall = R"({"prompt": "a", "size": "16x16", "seed": 5})";

const std::string kChunked =
    "POST /v1/tokens HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    "transfer-encoding: chunked\r\n\r\n";

// What a proxy may read as another request, or check by the other of two headers (RFC 9112, 6.3).
TEST(OddHttp, RefusesWhatIsAmbiguous) {
  FakeEngine engine;
  const Server server(engine, {.origins = {"https://friend.example"}});
  const std::string next = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
  for (const std::string odd :
       {"transfer-encoding: xchunked", "transfer-encoding: chunked, identity",
        "transfer-encoding:", "transfer-encoding:\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
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

// RFC 9112, section 3.2.4, and HAProxy's older checks
TEST(OddHttp, TellsWhatTheWholeServerTakes) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret", .base_path = "/pictures"});
  const auto answer = server.ask("OPTIONS *");
  EXPECT_EQ(status_of(answer), 204) << answer;
  EXPECT_THAT(answer, HasSubstr("allow: GET, HEAD, POST, DELETE, OPTIONS\r\n"));
  for (const std::string line : {"GET *", "OPTIONS **", "OPTIONS *?a=b"})
    EXPECT_EQ(status_of(server.ask(line)), 400) << line;
}

TEST(OddHttp, CallsWrongAddressesBadRequests) {
  FakeEngine engine;
  const Server server(engine);
  for (const std::string address : {"*", "livez", "/%zz", "/%00", "http:///livez", "/livez?a=%2"}) {
    const auto answer = server.ask("GET " + address);
    EXPECT_EQ(status_of(answer), 400) << address;
    EXPECT_EQ(json_of(answer)["error"]["code"], "bad_request") << address;
  }
  const auto nameless =
      RawClient(server.port()).asked("GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n");
  EXPECT_EQ(json_of(nameless)["error"]["code"], "bad_request");
}

// RFC 9110, section 5.3: several fields of one name are one list.
TEST(OddHttp, ClosesWhereOneOfSeveralFieldsSaysSo) {
  FakeEngine engine;
  const Server server(engine);
  const std::string next = "GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
  for (const std::string fields : {"connection: x-foo\r\nconnection: close\r\n",
                                   "connection: keep-alive\r\nconnection: x-foo, Close\r\n"}) {
    RawClient client(server.port());
    client.send("GET /v1/models HTTP/1.1\r\nhost: localhost\r\n" + fields + "\r\n" + next);
    const auto all = client.read_all();
    EXPECT_EQ(status_of(all), 200) << fields;
    EXPECT_THAT(all, Not(HasSubstr("alive"))) << fields;
  }
}

// Chunks are unknown to HTTP/1.0: another end may have been found on the way (RFC 9112, 6.1).
TEST(OddHttp, EndsOldConnectionsBehindChunks) {
  FakeEngine engine;
  const Server server(engine);
  const std::string head =
      " HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n"
      "connection: keep-alive\r\n";
  const std::string json = R"({"prompt": "a"})", live = "GET /livez HTTP/1.0\r\nhost: a\r\n\r\n";
  const auto plain = head + "content-length: 15\r\n\r\n" + json;
  const auto chunked = head + "transfer-encoding: chunked\r\n\r\nf\r\n" + json + "\r\n0\r\n\r\n";
  EXPECT_THAT(RawClient(server.port()).asked("POST /v1/tokens" + plain + live), HasSubstr("alive"));
  const auto answer = RawClient(server.port()).asked("POST /v1/tokens" + chunked + live);
  EXPECT_THAT(answer, HasSubstr("\"encoder\""));
  EXPECT_THAT(answer, Not(HasSubstr("alive")));
  EXPECT_THAT(RawClient(server.port()).asked("GET /nothing" + chunked + live),
              Not(HasSubstr("alive")));
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
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that they come one by one
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
  EXPECT_TRUE(
      wait_until([&] { return server.http().num_connections() == 0; }, std::chrono::seconds(5)));
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

// Boost's parser throws for a trailer of 64 KiB.
TEST(OddHttp, BoundsTrailersAndExtensionsOfChunks) {
  FakeEngine engine;
  const Server server(engine);
  const std::string json = R"({"prompt":"a"})", size = "e", end = "\r\n0\r\n";
  const auto chunk = size + "\r\n" + json;
  for (const std::size_t bytes : {20'000, 65'534, 70'000, 200'000}) {
    const std::string many(bytes, 'x');
    for (const auto& body :
         {chunk + end + "x-t: " + many + "\r\n\r\n", chunk + end + many + ": x\r\n\r\n",
          size + ";" + many + "\r\n" + json + end + "\r\n", chunk + "\r\n0;" + many + "\r\n\r\n"}) {
      const auto answer = RawClient(server.port()).asked(kChunked + body);
      EXPECT_EQ(status_of(answer), 431) << bytes << answer;
      EXPECT_THAT(answer, HasSubstr("trailers_too_large"));
    }
  }
  std::string lines;
  while (lines.size() < 100'000) lines += "x-t: 1\r\n";
  EXPECT_EQ(status_of(RawClient(server.port()).asked(kChunked + chunk + end + lines)), 431);
  EXPECT_EQ(status_of(server.ask("GET /livez")), 200);
}

TEST(OddHttp, ReadsChunksOfAnySizeAndSkipsTheirExtensions) {
  FakeEngine engine;
  const Server server(engine);
  const std::string json = R"({"prompt": "a"})";
  const auto live = Server::request_text("GET /livez", "connection: close\r\n", "");
  std::string single = kChunked;
  for (const char c : json) single += std::string("1;name=\"value\"\r\n") + c + "\r\n";
  const std::string spaces(200'000, ' ');
  std::string large = kChunked + "30d40\r\n" + spaces + "\r\nf\r\n" + json + "\r\n";
  for (const auto& chunks : {single, large}) {
    const auto end = "0;last\r\nx-t: " + std::string(1000, 't') + "\r\n\r\n";
    const auto all = RawClient(server.port()).asked(chunks + end + live);
    EXPECT_THAT(all, HasSubstr("\"encoder\"")) << all.substr(0, 500);
    EXPECT_THAT(all, HasSubstr("alive")) << "the next request of the connection";
  }
}

// Bodies take memory: 16 large ones at once, eight of one client, and small ones besides.
TEST(OddHttp, ReadsFewLargeBodiesAtOnce) {
  FakeEngine engine;
  const Server server(engine);
  const std::string large =
      "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
      "content-length: 300000\r\nexpect: 100-continue\r\n\r\n";
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto* const here = "127.0.0.1";
  for (const auto* const own : {here, "127.0.0.2"}) {
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<RawClient>(server.port(), here, own));
      clients.back()->send(large);
      ASSERT_TRUE(clients.back()->read_until("100 Continue")) << own;
    }
    EXPECT_THAT(RawClient(server.port(), here, own).asked(large),
                HasSubstr("too_many_large_requests"));
  }
  EXPECT_THAT(RawClient(server.port(), here, "127.0.0.3").asked(large),
              HasSubstr("too_many_large_requests"));
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", kSmall)), 202);
  clients.clear();
  EXPECT_TRUE(wait_until([&] { return server.http().num_connections() == 0; }));
  RawClient next(server.port());
  next.send(large);
  EXPECT_TRUE(next.read_until("100 Continue"));
}

// The log stands for anything that fails while a connection is served.
TEST(OddHttp, GoesOnWhenAConnectionThrows) {
  FakeEngine engine;
  std::atomic<int> warnings = 0;
  const Server server(engine, {},
                      {.log = [](const RequestLog&) { throw std::runtime_error("no room"); },
                       .on_warning =
                           [&](const std::string& sentence) {
                             EXPECT_EQ(sentence, "a connection was closed: no room");
                             ++warnings;
                           }});
  for (int i = 0; i < 3; ++i) {
    RawClient client(server.port());
    EXPECT_THAT(client.asked(Server::request_text("GET /livez", "", "")), HasSubstr("alive"));
  }
  EXPECT_TRUE(wait_until([&] { return warnings == 3; }));
}

// A stream's end comes after its picture, so that a ping is due between both.
TEST(OddHttp, SendsNoPingOfAStreamIntoTheNextAnswer) {
  std::promise<void> over;
  FakeEngine engine(FakeEngine::Steps::kHeld);
  engine.adapt = [until = over.get_future().share()](Backend& backend) {
    backend.generate = [draw = backend.generate, until](const Request& request,
                                                        const Hooks& hooks) {
      draw(request, hooks);
      if (request.prompts.front() == "streamed") until.wait();
    };
  };
  Server server(engine, {}, {.ping_interval = std::chrono::milliseconds(200)});
  RawClient client(server.port()), clock(server.port());
  client.send(Server::request_text(
      "POST /v1/images/generations", "",
      R"({"prompt": "streamed", "size": "16x16", "steps": 1, "stream": true})"));
  engine.release(1);
  ASSERT_TRUE(client.read_until("image_generation.completed"));
  const std::string id = json_of(server.ask("POST /v1/jobs", "", kSmall))["id"];
  clock.send(Server::request_text("GET /v1/jobs/" + id + "/events", "", ""));
  ASSERT_TRUE(client.read_until(": ping"));
  ASSERT_EQ(status_of(server.ask("GET /livez")), 200) << "the next ping is awaited";
  over.set_value();
  ASSERT_TRUE(client.read_until("\r\n0\r\n\r\n"));
  client.forget();
  client.send(Server::request_text("POST /v1/images/generations", "", kSmall));
  engine.wait_until_called(2);
  EXPECT_TRUE(wait_until([&] { return server.service().status().waiting == 1; }));
  for (int i = 0; i < 2; ++i) {  // more than an interval passes
    clock.forget();
    ASSERT_TRUE(clock.read_until(": ping"));
  }
  engine.finish();
  ASSERT_TRUE(client.read_until("\"size\":\"16x16\"}"));
  EXPECT_THAT(client.received(), testing::StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(client.received(), Not(HasSubstr(": ping")));
}

// A reader that is slow, but reads: the time limit of writing grows with the answer.
TEST(OddHttp, GivesLongAnswersMoreTime) {
  FakeEngine engine;
  const Server server(engine, {}, {.write_time = std::chrono::milliseconds(50)});
  RawClient slow(server.port());
  const std::string json = R"({"prompt": "large", "size": "16x16", "n": 10})";
  slow.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n", json));
  ASSERT_TRUE(slow.read_until("b64_json"));
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // longer than short answers may
  EXPECT_GT(slow.read_all().size(), std::size_t(40) << 20) << "more than sockets hold";
}

}  // namespace braid::serve::odd_http_test
