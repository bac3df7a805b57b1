// What operators read at /metrics.
#include "serve/metrics.h"

#include <gmock/gmock.h>

#include "test_server.h"

namespace braid::serve::metrics_test {

using testing::HasSubstr;

// What a scraper subtracts to get the last minute's mean would else move in steps of seconds.
TEST(Histogram, TellsSumsOfMonthsToTheMillisecond) {
  Histogram steps;
  steps.add(1'234'567.25);
  steps.add(0.001);
  EXPECT_THAT(steps.samples("step_seconds", ""), HasSubstr("step_seconds_sum 1234567.251\n"));
}

const std::string kSmall = R"({"prompt": "a", "size": "16x16", "seed": 5})";
const std::string kLong(1001, ' ');  // more than the servers here take
const std::string kBearer = "authorization: Bearer secret\r\n";
const std::string kDraw = "POST /v1/images/generations";

// A sample as a server shows it; -1: it shows none.
int sample_of(const Server& server, const std::string& name) {
  const auto text = server.ask("GET /metrics", kBearer);
  const auto at = text.find("\n" + name + " ");
  return at == text.npos ? -1 : std::stoi(text.substr(at + name.size() + 2));
}

// Requests with an outcome, as a server has counted them.
int num_requests(const Server& server, const std::string& outcome) {
  return sample_of(server, "braid_requests_total{outcome=\"" + outcome + "\"}");
}

// A sample that appears with its first count has no rate before the second one.
TEST(Metrics, HaveAllSamplesFromTheStart) {
  FakeEngine engine;
  const Server server(engine);
  for (const auto* const outcome : {"done", "failed", "cancelled", "queue_full", "invalid"})
    EXPECT_EQ(num_requests(server, outcome), 0) << outcome;
  for (const std::string stage : {"load", "text", "denoise", "decode"})
    EXPECT_EQ(sample_of(server, "braid_stage_seconds_count{stage=\"" + stage + "\"}"), 0) << stage;
  for (const std::string times : {"request", "queue", "step"})
    EXPECT_EQ(sample_of(server, "braid_" + times + "_seconds_count"), 0) << times;
}

// The engine refuses it once its model is loaded.
TEST(RefusedRequests, AreTheClientsFaultAlsoBehindTheQueue) {
  FakeEngine engine;
  const Server server(engine);
  const auto lora = R"({"prompt": "a", "size": "16x16", "lora": [{"name": "odd"}]})";
  EXPECT_EQ(status_of(server.ask(kDraw, "", lora)), 400);
  EXPECT_EQ(num_requests(server, "invalid"), 1);
  const std::string id = json_of(server.ask("POST /v1/jobs", "", lora))["id"];
  server.ask("GET /v1/jobs/" + id + "/events");
  EXPECT_EQ(num_requests(server, "invalid"), 2);
  EXPECT_EQ(num_requests(server, "failed"), 0);
  EXPECT_EQ(sample_of(server, "braid_request_seconds_count"), 0);
  EXPECT_EQ(status_of(server.ask(kDraw, "", kSmall)), 200);
  EXPECT_EQ(sample_of(server, "braid_request_seconds_count"), 1);
}

TEST(CancelledRequests, TakeTimeOnlyIfTheEngineRanThem) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine);
  const auto post = [&]() -> std::string {
    return json_of(server.ask("POST /v1/jobs", "", kSmall))["id"];
  };
  const auto runs = post();
  engine.wait_until_called(1);
  const auto waits = post();
  server.ask("DELETE /v1/jobs/" + waits);
  EXPECT_EQ(num_requests(server, "cancelled"), 1);
  EXPECT_EQ(sample_of(server, "braid_request_seconds_count"), 0);
  server.ask("DELETE /v1/jobs/" + runs);
  server.ask("GET /v1/jobs/" + runs + "/events");
  EXPECT_EQ(num_requests(server, "cancelled"), 2);
  EXPECT_EQ(sample_of(server, "braid_request_seconds_count"), 1);
}

TEST(RefusedRequests, AreCountedOnceWhereTheQueueIsFull) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine, {}, {}, {.max_waiting_pictures = 1});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", kSmall)), 202);
    engine.wait_until_called(1);
  }
  int full = 0;
  for (const auto* const line : {"POST /v1/jobs", "POST /sdapi/v1/txt2img"}) {
    EXPECT_EQ(status_of(server.ask(line, "", kSmall)), 429);
    EXPECT_EQ(num_requests(server, "queue_full"), ++full);
  }
  engine.finish();
}

TEST(RefusedRequests, AreCountedForPicturesAlone) {
  FakeEngine engine;
  const Server server(engine, {}, {.max_body_bytes = 1000});
  for (const auto& [line, body] : std::vector<std::pair<std::string, std::string>>{
           {"POST /v1/tokens", "{"},
           {"POST /v1/tokens", kLong},
           {"GET /v1/jobs/a/events?after=x", ""},
           {"GET /v1/jobs?a=%zz", ""},
           {"POST /sdapi/v1/png-info", R"({"image": "?"})"},
           {"POST /v1/nothing", kSmall},
           {"GET /v1/images/generations", ""}})
    EXPECT_GE(status_of(server.ask(line, "", body)), 400) << line;
  EXPECT_EQ(num_requests(server, "invalid"), 0);
  int refused = 0;
  for (const auto* const path : {"/v1/images/generations", "/v1/images/edits", "/v1/jobs",
                                 "/sdapi/v1/txt2img", "/sdapi/v1/img2img"}) {
    const auto line = std::string("POST ") + path;
    EXPECT_EQ(status_of(server.ask(line, "", "{")), 400) << path;
    EXPECT_EQ(status_of(server.ask(line + "?a=%zz", "", kSmall)), 400) << path;
    EXPECT_EQ(status_of(server.ask(line, "", kLong)), 413) << path;
    EXPECT_EQ(status_of(server.ask(line, "content-type: text/plain\r\n", kSmall)), 415) << path;
    EXPECT_EQ(num_requests(server, "invalid"), refused += 4) << path;
  }
  const auto unknown = R"({"prompt": "a", "model": "unknown"})";
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", unknown)), 404);
  EXPECT_EQ(num_requests(server, "invalid"), refused + 1);
}

TEST(RefusedRequests, AreCountedBelowAPathToo) {
  FakeEngine engine;
  const Server server(engine, {.base_path = "/pictures"}, {.max_body_bytes = 1000});
  int refused = 0;
  for (const std::string prefix : {"/pictures", "/forwarded"}) {
    const auto line = "POST " + prefix + "/v1/images/generations";
    const auto forwarded = "x-forwarded-prefix: " + prefix + "\r\n";
    EXPECT_EQ(status_of(server.ask(line, forwarded, "{")), 400);
    EXPECT_EQ(status_of(server.ask(line, forwarded, kLong)), 413);
    EXPECT_EQ(status_of(server.ask(line + "?a=%zz", forwarded, kSmall)), 400);
    EXPECT_EQ(num_requests(server, "invalid"), refused += 3) << prefix;
  }
  EXPECT_EQ(status_of(server.ask("POST /pictures/v1/jobs", "", kLong)), 413);
  EXPECT_EQ(num_requests(server, "invalid"), refused + 1) << "with --base-path alone";
}

// Who may not ask is told so, whatever else is wrong.
TEST(RefusedRequests, AreNotCountedForStrangers) {
  FakeEngine engine;
  const Server locked(engine, {.key = "secret"}, {.max_body_bytes = 1000});
  const Server open(engine, {}, {.max_body_bytes = 1000});
  const std::string evil_host = "host: evil.example\r\n", evil_page = "origin: http://evil\r\n";
  std::string many = kDraw + "?";
  for (int i = 0; i < 65; ++i) many += std::to_string(i) + "=1&";
  const auto no_host = kDraw + " HTTP/1.1\r\nconnection: close\r\n";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {kDraw, kLong}, {kDraw + "?a=%zz", kSmall}, {many, kSmall}};
  for (const auto& [line, body] : wrong) {
    EXPECT_EQ(status_of(locked.ask(line, "", body)), 401) << line;
    EXPECT_EQ(status_of(locked.ask(line, evil_page + kBearer, body)), 403) << line;
    EXPECT_EQ(status_of(open.ask(line, evil_host, body)), 403) << line;
    EXPECT_EQ(status_of(open.ask(line, evil_page, body)), 403) << line;
  }
  EXPECT_EQ(status_of(RawClient(locked.port()).asked(no_host + "\r\n")), 401);
  EXPECT_EQ(num_requests(locked, "invalid"), 0);
  EXPECT_EQ(num_requests(open, "invalid"), 0);
  for (const auto& [line, body] : wrong)
    EXPECT_EQ(status_of(locked.ask(line, kBearer, body)), body == kLong ? 413 : 400) << line;
  EXPECT_EQ(status_of(RawClient(locked.port()).asked(no_host + kBearer + "\r\n")), 400);
  EXPECT_EQ(num_requests(locked, "invalid"), 4) << "with the key";
}

TEST(FailedRequests, AreCountedOnceWhereverTheyFail) {
  const auto adapt = [](Backend& backend) {
    backend.complete = [complete = backend.complete](const Request& request, const Hooks& hooks) {
      check(request.prompts.front() != "too much", "out of memory");
      return complete(request, hooks);
    };
  };
  FakeEngine engine(adapt);
  const auto enhance = [](const auto&, const auto&, const auto&) -> braid::net::EnhancedPrompt {
    throw Error("the enhancer broke");
  };
  const Server server(engine, {}, {}, {}, [&](ApiContext& context) { context.enhance = enhance; });
  int failed = 0;
  for (const auto& [body, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"prompt": "too much"})", "internal_error"},
           {R"({"prompt": "a", "enhance": true})", "internal_error"},
           {R"({"prompt": "fails"})", "generation_failed"}}) {
    const auto answer = server.ask(kDraw, "", body);
    EXPECT_EQ(status_of(answer), 500) << body;
    EXPECT_THAT(answer, HasSubstr(words)) << body;
    EXPECT_EQ(num_requests(server, "failed"), ++failed) << body;
  }
}

// The web UI's answer repeats a picture's text, which is too long to be read back here.
TEST(FailedRequests, AreNotThoseWhosePicturesWereDrawn) {
  FakeEngine engine;
  const Server server(engine);
  const auto answer = server.ask("POST /sdapi/v1/txt2img", "",
                                 R"({"prompt": "large", "width": 16, "height": 16, "steps": 1})");
  EXPECT_EQ(status_of(answer), 500);
  EXPECT_THAT(answer, HasSubstr("internal_error"));
  EXPECT_EQ(num_requests(server, "done"), 1);
  EXPECT_EQ(num_requests(server, "failed"), 0) << "counted as done";
}

}  // namespace braid::serve::metrics_test
