// Requests whose prompts are rewritten before they are drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/base64.h"
#include "image/picture_file.h"
#include "serve/api_error.h"
#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::enhance_test {

using braid::net::EnhancedPrompt;
using braid::net::EnhancerFailure;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using Rewrite =
    std::function<EnhancedPrompt(const braid::net::PlainPrompt&, const std::stop_token&)>;

const char* const kAsked = R"({"prompt": "a fox", "enhance": true})";

// Waits until it is told to stop.
struct SlowEnhancer {
  std::promise<void> begun, stopped;

  Rewrite enhance() {
    return [this](const braid::net::PlainPrompt&, const std::stop_token& stop) -> EnhancedPrompt {
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any changed;
      begun.set_value();
      changed.wait(lock, stop, [] { return false; });
      stopped.set_value();
      throw Cancelled("stopped");
    };
  }
};

class EnhancedRequests : public testing::Test {
 protected:
  Server& serve(Rewrite enhance = rewritten("a red fox in the snow")) {
    const auto counted = [this, enhance = std::move(enhance)](
                             const Backend& backend, const auto& prompt, const auto& stop) {
      EXPECT_EQ(backend.model, "demo");
      ++asked_;
      {
        const std::scoped_lock lock(mutex_);  // several may ask at once
        told_ = prompt.text;
        num_pictures_ = int(prompt.pictures.size());
      }
      return enhance(prompt, stop);
    };
    return server_.emplace(engine_, Access{}, HttpServerOptions{}, ServiceOptions{},
                           [&](ApiContext& context) { context.enhance = counted; });
  }
  static Rewrite rewritten(const std::string& prompt) {
    return [prompt](const auto&, const auto&) { return EnhancedPrompt{.prompt = prompt}; };
  }
  static Rewrite failing(EnhancerFailure::Kind kind) {
    return [kind](const auto&, const auto&) -> EnhancedPrompt {
      throw EnhancerFailure(kind, "its reason");
    };
  }
  std::string post(const std::string& path, const std::string& body = kAsked) {
    return server_->ask("POST " + path, "", body);
  }
  bool has_jobs() {
    return !json_of(server_->ask("GET /v1/jobs"))["jobs"].empty() ||
           server_->service().status().running + server_->service().status().waiting > 0;
  }

  FakeEngine engine_;
  SlowEnhancer slow_;
  std::atomic<int> asked_ = 0;
  std::mutex mutex_;
  std::string told_;
  int num_pictures_ = 0;
  std::optional<Server> server_;
};

TEST_F(EnhancedRequests, DrawWhatTheEnhancerWrote) {
  serve();
  const auto answer = post("/v1/images/generations");
  ASSERT_EQ(status_of(answer), 200) << answer;
  EXPECT_EQ(told_, "a fox");
  EXPECT_EQ(engine_.last().prompts.front(), "a red fox in the snow");
  const auto picture = json_of(answer)["data"][0];
  EXPECT_EQ(picture["revised_prompt"], "a red fox in the snow");
  const auto text =
      read_picture_text(bytes_of_base64(picture["b64_json"].get<std::string>(), ""), "");
  EXPECT_EQ(text[0], (PngText::value_type{"prompt", "a red fox in the snow"}));
  EXPECT_EQ(text[1], (PngText::value_type{"original_prompt", "a fox"}));
}

TEST_F(EnhancedRequests, AreThoseThatAskForIt) {
  serve();
  for (const char* const body :
       {R"({"prompt": "a fox"})", R"({"prompt": "a fox", "enhance": false})",
        R"({"prompt": "a fox", "enhance": null})"}) {
    const auto answer = post("/v1/images/generations", body);
    ASSERT_EQ(status_of(answer), 200) << answer;
    EXPECT_THAT(answer, Not(HasSubstr("revised_prompt")));
  }
  EXPECT_EQ(
      status_of(post("/v1/images/generations", R"({"prompt": "a", "enhance": "yes please"})")),
      400);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(engine_.last().prompts.front(), "a fox");
}

TEST_F(EnhancedRequests, AreRefusedWithoutAnEnhancer) {
  const Server plain(engine_);
  const auto answer = plain.ask("POST /v1/images/generations", "", kAsked);
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_EQ(json_of(answer)["error"]["param"], "enhance");
  EXPECT_THAT(answer, HasSubstr("this server has no prompt enhancer"));
  EXPECT_EQ(json_of(plain.ask("GET /v1/capabilities"))["enhancer"], false);
  EXPECT_EQ(json_of(serve().ask("GET /v1/capabilities"))["enhancer"], true);
}

TEST_F(EnhancedRequests, MakeNoJobIfTheEnhancerFails) {
  using Kind = EnhancerFailure::Kind;
  const std::vector<std::pair<Kind, int>> cases = {{Kind::kGone, 502},
                                                   {Kind::kBusy, 502},
                                                   {Kind::kLate, 504},
                                                   {Kind::kRefused, 502},
                                                   {Kind::kNonsense, 502}};
  for (const auto& [kind, status] : cases) {
    serve(failing(kind));
    for (const char* const path : {"/v1/images/generations", "/v1/jobs", "/sdapi/v1/txt2img"}) {
      const auto answer = post(path);
      EXPECT_EQ(status_of(answer), status) << path;
      EXPECT_THAT(answer, HasSubstr("the prompt was not enhanced: its reason")) << path;
      EXPECT_EQ(answer.find("x-should-retry: false") == answer.npos,
                kind == Kind::kGone || kind == Kind::kBusy);
      EXPECT_FALSE(has_jobs());
    }
  }
  EXPECT_TRUE(engine_.last().prompts.empty()) << "nothing was drawn";
}

TEST_F(EnhancedRequests, SayWhatCannotBeAskedOrDrawn) {
  serve([](const auto&, const auto&) -> EnhancedPrompt { throw InputError("too many pictures"); });
  EXPECT_EQ(status_of(post("/v1/images/generations")), 400);
  serve(rewritten("refused"));
  const auto answer = post("/v1/images/generations");
  EXPECT_EQ(status_of(answer), 502);
  EXPECT_THAT(answer, HasSubstr("its answer cannot be drawn: this prompt is refused"));
  asked_ = 0;
  EXPECT_EQ(status_of(post("/v1/images/generations", R"({"prompt": "refused", "enhance": true})")),
            400);
  EXPECT_EQ(asked_, 0) << "what cannot be drawn is refused first";
}

TEST_F(EnhancedRequests, KeepOnlyAnswersThatCanBeDrawn) {
  int kept = 0;
  const auto answered = [&](const std::string& prompt) {
    serve([&, prompt](const auto&, const auto&) {
      return EnhancedPrompt{.prompt = prompt, .keep = [&] { ++kept; }};
    });
    return status_of(post("/v1/images/generations"));
  };
  EXPECT_EQ(answered("refused"), 502);
  EXPECT_EQ(kept, 0);
  EXPECT_EQ(answered("a red fox in the snow"), 200);
  EXPECT_EQ(kept, 1);
}

TEST_F(EnhancedRequests, TakeTheSizeThatTheEnhancerNames) {
  serve([](const auto&, const auto&) {
    return EnhancedPrompt{.prompt = "b", .shape = braid::net::WidthHeight{1, 1}};
  });
  post("/v1/images/generations");
  EXPECT_EQ(engine_.last().width, 96) << "about 128 x 64 pixels";
  EXPECT_EQ(engine_.last().height, 96);
  post("/v1/images/generations", R"({"prompt": "a fox", "enhance": true, "size": "64x32"})");
  EXPECT_EQ(engine_.last().width, 64) << "the client's own size wins";
  serve([](const auto&, const auto&) {
    return EnhancedPrompt{.prompt = "b", .pixels = braid::net::WidthHeight{60'000, 30'000}};
  });
  EXPECT_EQ(status_of(post("/v1/images/generations")), 200);
  EXPECT_EQ(engine_.last().width, 2896) << "within the server's 2048 x 2048 pixels";
  EXPECT_EQ(engine_.last().height, 1440);
}

TEST_F(EnhancedRequests, KeepBothPromptsInEveryApi) {
  serve();
  const auto job = json_of(post("/v1/jobs"));
  EXPECT_EQ(job["request"]["prompt"], "a red fox in the snow");
  EXPECT_EQ(job["request"]["original_prompt"], "a fox");
  const auto web_ui = json_of(post("/sdapi/v1/txt2img"));
  EXPECT_EQ(web_ui["parameters"]["prompt"], "a red fox in the snow");
  EXPECT_THAT(
      nlohmann::json::parse(web_ui["info"].get<std::string>())["infotexts"][0],
      AllOf(testing::StartsWith("a red fox in the snow\n"), HasSubstr("original_prompt: a fox")));
  const auto stream =
      post("/v1/images/generations", R"({"prompt": "a fox", "enhance": true, "stream": true})");
  EXPECT_THAT(stream, HasSubstr(R"("revised_prompt":"a red fox in the snow")"));
}

TEST_F(EnhancedRequests, ShowTheirPictures) {
  serve();
  const std::vector<std::uint8_t> grey(8 * 8 * 3, 100);
  const auto picture = base64(encode_png(8, 8, grey));
  const auto answer = post("/v1/images/edits", R"({"prompt": "a", "enhance": true, "image": [")" +
                                                   picture + R"(", ")" + picture + R"("]})");
  ASSERT_EQ(status_of(answer), 200) << answer;
  EXPECT_EQ(num_pictures_, 2);
  EXPECT_EQ(engine_.last().pictures.references.size(), 2u);
}

TEST_F(EnhancedRequests, LeaveTheServerFreeForOthers) {
  serve(slow_.enhance());
  RawClient waiting(server_->port());
  waiting.send(Server::request_text("POST /v1/images/generations", "", kAsked));
  slow_.begun.get_future().wait();
  EXPECT_EQ(status_of(server_->ask("GET /readyz")), 200);
  EXPECT_EQ(status_of(post("/v1/images/generations", R"({"prompt": "another"})")), 200);
  EXPECT_FALSE(waiting.has_more());
}

TEST_F(EnhancedRequests, EndWithTheirClient) {
  serve(slow_.enhance());
  RawClient client(server_->port());
  client.send(Server::request_text("POST /v1/jobs", "", kAsked));
  slow_.begun.get_future().wait();
  client.leave();
  EXPECT_EQ(slow_.stopped.get_future().wait_for(std::chrono::seconds(30)),
            std::future_status::ready);
  EXPECT_FALSE(has_jobs());
}

TEST_F(EnhancedRequests, EndWithTheServer) {
  serve(slow_.enhance());
  RawClient client(server_->port());
  client.send(Server::request_text("POST /v1/images/generations", "", kAsked));
  slow_.begun.get_future().wait();
  const auto began = Clock::now();
  server_->service().stop();
  server_->stop();
  EXPECT_THAT(client.read_all(), HasSubstr("HTTP/1.1 503"));
  server_.reset();
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(4)) << "nobody waits for the enhancer";
}

// Four are with the enhancer, the others wait for it.
TEST_F(EnhancedRequests, GiveTheirPlacesBackWhenTheirClientsLeave) {
  serve([](const auto&, const std::stop_token& stop) -> EnhancedPrompt {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
    throw Cancelled("stopped");
  });
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto taken = [&] { return server_->service().status().waiting_pictures; };
  const auto send = [&](int requests) {
    for (int i = 0; i < requests; ++i) {
      clients.push_back(std::make_unique<RawClient>(server_->port()));
      clients.back()->send(Server::request_text("POST /v1/images/generations", "", kAsked));
    }
  };
  send(4);
  EXPECT_TRUE(wait_until([&] { return asked_ == 4; }));
  send(60);
  ASSERT_TRUE(wait_until([&] { return taken() == 64; }));
  const auto full = post("/v1/images/generations", R"({"prompt": "b"})");
  EXPECT_EQ(status_of(full), 429);
  EXPECT_THAT(full, HasSubstr("retry-after: 10\r\n")) << "nobody knows how long they take";
  clients.resize(4);
  EXPECT_TRUE(wait_until([&] { return taken() == 4; }));
  EXPECT_EQ(asked_, 4);
  EXPECT_EQ(status_of(post("/v1/images/generations", R"({"prompt": "b"})")), 200);
}

TEST_F(EnhancedRequests, AreFinishedByAServerThatDrains) {
  std::promise<void> begun, go_on;
  serve([&](const auto&, const auto&) {
    begun.set_value();
    go_on.get_future().wait();
    return EnhancedPrompt{.prompt = "b"};
  });
  RawClient client(server_->port());
  client.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n", kAsked));
  begun.get_future().wait();
  server_->service().drain();
  EXPECT_EQ(status_of(post("/v1/images/generations")), 503) << "it takes no more";
  go_on.set_value();
  EXPECT_THAT(client.read_all(), HasSubstr("revised_prompt"));
  server_->service().wait();
}

TEST_F(EnhancedRequests, LeaveTheirConnectionUsable) {
  serve([](const braid::net::PlainPrompt& prompt, const auto&) {
    if (prompt.text == "fails") throw EnhancerFailure(EnhancerFailure::Kind::kLate, "slow");
    return EnhancedPrompt{.prompt = "b"};
  });
  RawClient client(server_->port());
  const std::string fails = R"({"prompt": "fails", "enhance": true})";
  for (const std::string& body : {fails, std::string(kAsked), fails, std::string(kAsked)}) {
    client.forget();
    client.send(Server::request_text("POST /v1/images/generations", "", body));
    ASSERT_TRUE(client.read_until(body == fails ? "enhancer_timeout" : "revised_prompt"));
  }
  client.forget();
  client.send(Server::request_text("GET /readyz", "connection: close\r\n", ""));
  EXPECT_EQ(status_of(client.read_all()), 200);
}

}  // namespace braid::serve::enhance_test
