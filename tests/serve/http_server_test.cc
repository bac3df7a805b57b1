// The server over real sockets: access, answers, and clients that are slow, rude or gone.
#include "serve/http/http_server.h"
#include "base/base64.h"

#include <gmock/gmock.h>

#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::http_server_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kSmall = R"({"prompt": "a", "size": "16x16", "seed": 5})";

TEST(HttpServer, LetsOnlyItsOwnNameIn) {
  FakeEngine engine;
  const Server server(engine, {.hosts = {"pictures.example"}});
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: evil.example\r\n")), 403);
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: localhost.evil.example\r\n")), 403);
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: LOCALHOST:8188\r\n")), 200);
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: 127.0.0.1:1\r\n")), 200);
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: [::1]:8188\r\n")), 200);
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: [::1]\r\n")), 200);
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: pictures.example\r\n")), 200);
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "host: a\r\nhost: localhost\r\n")), 400);
}

TEST(HttpServer, ListensAtLocalhostInCapitals) {
  FakeEngine engine;
  const Server server(engine, {}, {.address = "LOCALHOST"});
  EXPECT_EQ(status_of(server.ask("GET /livez")), 200);
}

TEST(HttpServer, KnowsItselfByTheAddressItIsReachedAt) {
  FakeEngine engine;
  const Server server(engine, {}, {.address = "127.0.0.2"});
  const auto status = [&](const std::string& host) {
    RawClient client(server.port(), "127.0.0.2");
    return status_of(client.asked("GET /v1/models HTTP/1.0\r\nhost: " + host + "\r\n\r\n"));
  };
  EXPECT_EQ(status("127.0.0.2:8188"), 200);
  EXPECT_EQ(status("127.0.0.3:8188"), 403);
}

TEST(HttpServer, KnowsItselfByAbsoluteAddresses) {
  FakeEngine engine;
  const Server server(engine, {.hosts = {"pictures.example"}});
  const auto status = [&](const std::string& address, const std::string& headers = "") {
    return status_of(server.ask("GET " + address, headers));
  };
  EXPECT_EQ(status("http://127.0.0.1:8188/livez"), 200);
  EXPECT_EQ(status("http://pictures.example/v1/models", "host: evil.example\r\n"), 200);
  EXPECT_EQ(status("http://evil.example/v1/models", "host: localhost\r\n"), 403);
  EXPECT_EQ(status("http://localhost.evil.example/v1/models"), 403);
  EXPECT_EQ(status("https://localhost/livez"), 400) << "there is no TLS";
  const std::string page = "origin: http://evil.example\r\n";
  EXPECT_EQ(status("http://localhost/livez", "host: evil.example\r\n" + page), 403);
  EXPECT_THAT(RawClient(server.port()).asked("GET http://localhost/livez HTTP/1.1\r\n\r\n"),
              HasSubstr("there is no Host header"));
}

// A browser's preflight asks what a page may send before it sends the key.
TEST(HttpServer, AnswersABrowsersQuestionWithoutAKey) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret", .origins = {"https://friend.example"}});
  const auto asked = [&](const std::string& origin) {
    return server.ask("OPTIONS /v1/jobs", "origin: " + origin + "\r\n");
  };
  EXPECT_EQ(status_of(asked("https://friend.example")), 204);
  EXPECT_THAT(asked("https://friend.example"), HasSubstr("access-control-allow-headers: author"));
  EXPECT_EQ(status_of(asked("https://evil.example")), 403);
  // OpenAI's package for JavaScript sends such headers.
  const auto answer =
      server.ask("OPTIONS /v1/images/generations",
                 "origin: https://friend.example\r\naccess-control-request-method: POST\r\n"
                 "access-control-request-headers: authorization,x-stainless-lang\r\n");
  EXPECT_THAT(answer,
              HasSubstr("access-control-allow-headers: authorization,x-stainless-lang\r\n"));
  EXPECT_THAT(answer, HasSubstr("allow: POST\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length"))) << "204 has none";
  EXPECT_THAT(
      server.ask("GET /livez", "origin: https://friend.example\r\n"),
      HasSubstr(
          "access-control-expose-headers: location, retry-after, x-request-id, x-should-retry"));
  EXPECT_THAT(server.ask("GET /livez"), HasSubstr("vary: origin")) << "for caches";
}

TEST(HttpServer, LetsOnlyItsOwnPagesIn) {
  FakeEngine engine;
  const Server server(engine, {.origins = {"https://friend.example"}});
  const auto from = [&](const std::string& origin) {
    return server.ask("GET /v1/models", "origin: " + origin + "\r\n");
  };
  EXPECT_EQ(status_of(from("https://evil.example")), 403);
  EXPECT_EQ(status_of(from("null")), 403);
  EXPECT_EQ(status_of(from("http://localhost")), 200);
  EXPECT_EQ(status_of(from("https://localhost")), 200);  // behind a proxy that adds TLS
  EXPECT_THAT(from("http://localhost"), Not(HasSubstr("access-control-allow-origin")));
  EXPECT_THAT(from("https://friend.example"),
              HasSubstr("access-control-allow-origin: https://friend.example"));
  // a body type that any page may send without a preflight
  const auto text = server.ask("POST /v1/jobs", "content-type: text/plain\r\n", kSmall);
  EXPECT_EQ(status_of(text), 415);
  // what takes no body takes an empty one of any type, as curl -d '' sends it
  const auto form = "content-type: application/x-www-form-urlencoded\r\n";
  EXPECT_EQ(status_of(server.ask("POST /sdapi/v1/interrupt", form, "")), 200);
  const auto spaced = "content-type: Application/JSON ; charset=utf-8\r\n";
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", spaced, kSmall)), 202);
  const auto packed = server.ask("POST /v1/jobs", "content-encoding: gzip\r\n", kSmall);
  EXPECT_THAT(packed, HasSubstr("should not be compressed"));
}

TEST(HttpServer, AsksForItsKeyBeforeTheBody) {
  FakeEngine engine;
  const Server server(engine, {.key = "secret"});
  EXPECT_EQ(status_of(server.ask("GET /v1/models")), 401);
  EXPECT_EQ(status_of(server.ask("GET /metrics")), 401);
  EXPECT_EQ(status_of(server.ask("GET /livez")), 200);
  EXPECT_EQ(status_of(server.ask("GET /readyz")), 200);
  for (const std::string wrong : {"Bearer secre", "Bearer secret2", "Bearer", "secret", "Basic !"})
    EXPECT_EQ(status_of(server.ask("GET /v1/models", "authorization: " + wrong + "\r\n")), 401);
  EXPECT_EQ(status_of(server.ask("GET /v1/models", "authorization: Bearer secret\r\n")), 200);
  const auto basic = "authorization: Basic " + base64("me:secret") + "\r\n";
  EXPECT_EQ(status_of(server.ask("GET /v1/models", basic)), 200);
  RawClient client(server.port());
  client.send("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n");
  EXPECT_TRUE(client.read_until("401")) << "without a byte of the body";
}

TEST(HttpServer, BoundsHeadsAndBodies) {
  FakeEngine engine;
  const Server server(engine, {}, {.max_body_bytes = 1000});
  const std::string json = "content-type: application/json\r\n";
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", std::string(1001, ' '))), 413);
  RawClient chunked(server.port());
  chunked.send("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\n" + json +
               "transfer-encoding: chunked\r\n\r\n400\r\n" + std::string(1024, ' ') +
               "\r\n0\r\n\r\n");
  EXPECT_TRUE(chunked.read_until("413"));
  const auto long_head = server.ask("GET /livez", "x: " + std::string(20'000, 'x') + "\r\n");
  EXPECT_EQ(status_of(long_head), 431);
  EXPECT_THAT(long_head, HasSubstr("the head should have at most 16384 bytes, it has more"));
  EXPECT_EQ(status_of(server.ask("GET /%zz")), 400);
  RawClient no_chunk(server.port());
  no_chunk.send("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\n" + json +
                "transfer-encoding: chunked\r\n\r\nzz\r\n");
  EXPECT_TRUE(no_chunk.read_until("400"));
  RawClient rude(server.port());
  rude.send("\x16\x03\x01 what is this\r\n\r\n");
  EXPECT_TRUE(rude.read_until("400"));
}

TEST(HttpServer, SaysThatItWantsABodyWhenItIsAsked) {
  FakeEngine engine;
  const Server server(engine);
  RawClient client(server.port());
  client.send(
      "POST /v1/images/generations HTTP/1.1\r\nhost: localhost\r\nexpect: 100-Continue\r\n"
      "content-type: application/json\r\ncontent-length: " +
      std::to_string(kSmall.size()) + "\r\n\r\n");
  ASSERT_TRUE(client.read_until("100 Continue\r\n\r\n"));
  client.send(kSmall);
  EXPECT_TRUE(client.read_until("b64_json"));
  RawClient old(server.port());
  old.send(
      "POST /v1/images/generations HTTP/1.0\r\nhost: localhost\r\nexpect: 100-continue\r\n"
      "content-type: application/json\r\ncontent-length: " +
      std::to_string(kSmall.size()) + "\r\n\r\n" + kSmall);
  EXPECT_THAT(old.read_all(), StartsWith("HTTP/1.0 200")) << "HTTP/1.0 knows no 100";
}

TEST(HttpServer, ServesManyRequestsOfOneConnection) {
  FakeEngine engine;
  const Server server(engine);
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send(Server::request_text("POST /v1/images/generations", "", kSmall));
    ASSERT_TRUE(client.read_until("\"size\":\"16x16\"}"));
    client.forget();
    client.send(Server::request_text("GET /livez", "", ""));
    ASSERT_TRUE(client.read_until("alive"));
    client.forget();
  }
}

TEST(HttpServer, AnswersRequestsThatComeAheadInTheirOrder) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine);
  RawClient client(server.port());
  const auto stream = R"({"prompt": "a", "size": "16x16", "stream": true})";
  client.send(Server::request_text("POST /v1/images/generations", "", kSmall) +
              Server::request_text("POST /v1/images/generations", "", stream) +
              Server::request_text("GET /livez", "connection: close\r\n", ""));
  engine.wait_until_called(1);
  engine.finish();
  const auto all = client.read_all();
  const auto first = all.find("\"b64_json\""), second = all.find("image_generation.completed");
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(second, std::string::npos);
  EXPECT_LT(first, second);
  EXPECT_LT(second, all.find("\r\n0\r\n\r\n")) << "an empty chunk ends the stream";
  EXPECT_LT(second, all.find("alive"));
}

TEST(HttpServer, SpeaksToOldClientsAndOfHeads) {
  FakeEngine engine;
  const Server server(engine);
  RawClient old(server.port());
  const std::string json = R"({"prompt": "a", "size": "16x16", "stream": true})";
  old.send(
      "POST /v1/images/generations HTTP/1.0\r\nhost: localhost\r\ncontent-type: "
      "application/json\r\ncontent-length: " +
      std::to_string(json.size()) + "\r\n\r\n" + json);
  const auto stream = old.read_all();
  EXPECT_THAT(stream, Not(HasSubstr("chunked")));
  EXPECT_THAT(stream, HasSubstr("event: image_generation.completed\ndata: {"));
  const auto head = server.ask("HEAD /livez");
  EXPECT_THAT(head, HasSubstr("Content-Length: 18\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("alive")));
  const std::string id = json_of(server.ask("POST /v1/jobs", "", kSmall))["id"];
  const auto head_of_stream = server.ask("HEAD /v1/jobs/" + id + "/events");
  EXPECT_THAT(head_of_stream, HasSubstr("text/event-stream"));
  EXPECT_THAT(head_of_stream, testing::EndsWith("\r\n\r\n"));
}

TEST(HttpServer, CancelsTheJobOfAClientThatLeaves) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  RawClient runs(server.port()), waits(server.port());
  runs.send(Server::request_text("POST /v1/images/generations", "", kSmall));
  engine.wait_until_called(1);
  waits.send(Server::request_text("POST /v1/images/generations", "",
                                  R"({"prompt": "b", "stream": true})"));
  ASSERT_TRUE(waits.read_until("text/event-stream"));
  waits.leave();
  EXPECT_TRUE(wait_until([&] { return server.service().status().waiting == 0; }));
  runs.leave();
  EXPECT_TRUE(wait_until([&] { return server.service().status().running == 0; }));
  engine.finish();
  EXPECT_EQ(status_of(server.ask("POST /v1/images/generations", "", kSmall)), 200);
}

TEST(HttpServer, DropsSlowHeadsAndBodiesWhileOthersAreServed) {
  FakeEngine engine;
  const auto limit = std::chrono::milliseconds(300);
  const Server server(engine, {}, {.head_time = limit, .body_time = limit});
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(std::make_unique<RawClient>(server.port()));
    slow.back()->send("GET /livez HT");
  }
  RawClient body(server.port());
  body.send(
      "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
      "content-length: 100\r\n\r\n{");
  const auto began = Clock::now();
  EXPECT_EQ(status_of(server.ask("GET /readyz")), 200);
  EXPECT_LT(Clock::now() - began, slow.size() * limit / 2) << "not after one another";
  for (const auto& client : slow) EXPECT_EQ(status_of(client->read_all()), 408);
  EXPECT_EQ(status_of(body.read_all()), 408);
  EXPECT_TRUE(wait_until([&] { return server.http().num_connections() == 0; }));
}

TEST(HttpServer, RefusesConnectionsBeyondABound) {
  FakeEngine engine;
  const Server server(engine, {}, {.max_connections = 3});
  RawClient a(server.port()), b(server.port()), c(server.port());
  for (auto* const client : {&a, &b, &c}) {
    client->send(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        "content-length: 100\r\nexpect: 100-continue\r\n\r\n");
    ASSERT_TRUE(client->read_until("100 Continue"));
  }
  RawClient d(server.port());
  d.send(Server::request_text("POST /v1/jobs", "", kSmall));
  EXPECT_TRUE(d.read_until("503"));
  EXPECT_THAT(d.received(), HasSubstr("retry-after"));
}

TEST(HttpServer, FinishesAnswersWhenItStops) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  RawClient idle(server.port()), asking(server.port());
  asking.send(Server::request_text("POST /v1/images/generations", "", kSmall));
  engine.wait_until_called(1);
  server.stop();
  EXPECT_EQ(idle.read_all(), "") << "an idle connection is closed";
  engine.finish();
  EXPECT_THAT(asking.read_all(), HasSubstr("b64_json"));
}

// A folder that is moved away is no client's fault, and where it was is not told.
TEST(HttpServer, TakesTheBlameForAModelThatCannotBeLoaded) {
  FakeEngine engine;
  std::mutex mutex;
  std::string log;
  Server server(engine, {}, {}, {.on_warning = [&](const std::string& sentence) {
                  const std::scoped_lock lock(mutex);
                  log += sentence + "\n";
                }});
  for (const std::string path : {"/v1/images/generations", "/sdapi/v1/txt2img", "/v1/tokens"}) {
    const auto answer = server.ask("POST " + path, "", R"({"prompt": "is not loaded"})");
    EXPECT_EQ(status_of(answer), 500) << path;
    const auto error = json_of(answer)["error"];
    EXPECT_EQ(error["type"], "server_error") << path;
    EXPECT_EQ(error["code"], "model_not_loaded") << path;
    EXPECT_TRUE(error["param"].is_null()) << path;
    EXPECT_EQ(error["message"], "the model 'demo' cannot be loaded: the server's log says why");
    EXPECT_THAT(answer, HasSubstr("x-should-retry: false\r\n")) << path;
    const std::scoped_lock lock(mutex);
    EXPECT_THAT(log, HasSubstr("the model 'demo' cannot be loaded: /models/demo is not a folder"));
    log.clear();
  }
  const auto stream = server.ask("POST /v1/images/generations", "",
                                 R"({"prompt": "is not loaded", "stream": true})");
  EXPECT_THAT(stream, HasSubstr("server_error"));
  EXPECT_THAT(stream, Not(HasSubstr("/models/demo")));
  EXPECT_THAT(server.ask("GET /metrics"),
              HasSubstr("braid_requests_total{outcome=\"failed\"} 3\n"));
}

TEST(HttpServer, TakesNoMorePicturesThanItsQueue) {
  FakeEngine engine;
  const Server server(engine, {}, {}, {.max_waiting_pictures = 8});
  EXPECT_EQ(json_of(server.ask("GET /v1/capabilities"))["limits"]["pictures"], 8);
  for (const std::string path : {"/v1/images/generations", "/v1/jobs"}) {
    const auto answer = server.ask("POST " + path, "", R"({"prompt": "a", "n": 10})");
    EXPECT_EQ(status_of(answer), 400) << path;
    EXPECT_EQ(json_of(answer)["error"]["param"], "n") << path;
    EXPECT_THAT(answer, HasSubstr("8")) << path;
  }
  EXPECT_EQ(status_of(server.ask("POST /sdapi/v1/txt2img", "",
                                 R"({"prompt": "a", "batch_size": 3, "n_iter": 3})")),
            400);
  EXPECT_EQ(status_of(server.ask("POST /v1/images/generations", "",
                                 R"({"prompt": "a", "size": "16x16", "n": 8})")),
            200);
}

}  // namespace braid::serve::http_server_test
