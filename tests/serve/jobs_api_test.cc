// Jobs over real sockets: asked about later, listed, followed by events, cancelled.
#include <gmock/gmock.h>

#include "test_server.h"

namespace braid::serve::jobs_api_test {

using testing::HasSubstr;
using testing::Not;

const std::string kSmall = R"({"prompt": "a", "size": "16x16", "seed": 5})";

TEST(JobsApi, RunsJobsThatAreAskedAboutLater) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  const auto accepted =
      server.ask("POST /v1/jobs", "", R"({"prompt": "a", "size": "16x16", "previews": true})");
  ASSERT_EQ(status_of(accepted), 202);
  const std::string id = json_of(accepted)["id"];
  EXPECT_EQ(id.size(), 32u);
  EXPECT_THAT(accepted, HasSubstr("location: /v1/jobs/" + id));
  RawClient events(server.port());
  events.send(Server::request_text("GET /v1/jobs/" + id + "/events", "", ""));
  ASSERT_TRUE(events.read_until("event: started"));
  engine.release(2);
  ASSERT_TRUE(events.read_until("\"step\":2,\"steps\":4"));
  ASSERT_TRUE(events.read_until("event: preview"));
  EXPECT_EQ(json_of(server.ask("GET /v1/jobs/" + id))["state"], "running");
  EXPECT_EQ(engine.preview_interval(), 0.5) << "seconds";
  engine.finish();
  ASSERT_TRUE(events.read_until("event: done"));
  const auto picture = server.ask("GET /v1/jobs/" + id + "/pictures/0");
  EXPECT_THAT(picture, HasSubstr("Content-Type: image/png"));
  EXPECT_EQ(status_of(server.ask("GET /v1/jobs/" + id + "/pictures/1")), 404);
  EXPECT_EQ(json_of(server.ask("GET /v1/jobs"))["jobs"].size(), 1u);
  EXPECT_EQ(json_of(server.ask("GET /v1/jobs?user=another"))["jobs"].size(), 0u);
  EXPECT_EQ(status_of(server.ask("GET /v1/jobs/0123")), 404);
}

TEST(JobsApi, HasTheFramesOfClipsInTheirOrder) {
  FakeEngine engine;
  engine.adapt = [](Backend& backend) { backend.info.frames = {.most = 9, .per_second = 8}; };
  const Server server(engine);
  const std::string wish = R"({"prompt": "a", "size": "16x16", "seed": 5, "n": 2, "frames": )";
  const std::string id = json_of(server.ask("POST /v1/jobs", "", wish + "3}"))["id"];
  EXPECT_THAT(server.ask("GET /v1/jobs/" + id + "/events"), HasSubstr("\"pictures\":6"));
  const auto pictures = json_of(server.ask("GET /v1/jobs/" + id))["pictures"];
  ASSERT_EQ(pictures.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(pictures[i]["frame"], i % 3);
    EXPECT_EQ(pictures[i]["frames"], 3);
    EXPECT_EQ(pictures[i]["frames_per_second"], 8);
    EXPECT_EQ(pictures[i]["seed"], 5 + i / 3);
  }
  EXPECT_EQ(status_of(server.ask("GET /v1/jobs/" + id + "/pictures/5")), 200);
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", wish + "10}")), 400);
  const auto answer = json_of(server.ask("POST /v1/images/generations", "", wish + "3}"));
  EXPECT_EQ(answer["data"].size(), 6u);
  EXPECT_EQ(answer["data"][4]["frame"], 1) << answer.dump().substr(0, 500);
}

TEST(JobsApi, HasTheLayersOfPicturesInTheirOrder) {
  FakeEngine engine;
  engine.adapt = [](Backend& backend) { backend.info.layers = {.drawn = 4, .most = 8}; };
  const Server server(engine);
  const std::string wish = R"({"prompt": "a", "size": "16x16", "seed": 5, "n": 2, "layers": )";
  const std::string id = json_of(server.ask("POST /v1/jobs", "", wish + "3}"))["id"];
  EXPECT_THAT(server.ask("GET /v1/jobs/" + id + "/events"), HasSubstr("\"pictures\":6"));
  const auto pictures = json_of(server.ask("GET /v1/jobs/" + id))["pictures"];
  ASSERT_EQ(pictures.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(pictures[i]["layer"], i % 3);
    EXPECT_EQ(pictures[i]["layers"], 3);
    EXPECT_FALSE(pictures[i].contains("frame"));
  }
  EXPECT_EQ(status_of(server.ask("POST /v1/jobs", "", wish + "9}")), 400);
  const auto answer = json_of(server.ask("POST /v1/images/generations", "", wish + "3}"));
  EXPECT_EQ(answer["data"].size(), 6u);
  EXPECT_EQ(answer["data"][4]["layer"], 1) << answer.dump().substr(0, 500);
}

TEST(JobsApi, RefusesLayersWhereTheModelDrawsNone) {
  FakeEngine engine;
  const Server server(engine);
  for (const std::string layers : {"1", "2"}) {
    const auto answer =
        server.ask("POST /v1/jobs", "", R"({"prompt": "a", "layers": )" + layers + "}");
    EXPECT_EQ(status_of(answer), 400);
    EXPECT_THAT(answer, HasSubstr("this model draws no layers"));
  }
}

TEST(JobsApi, ReplaysWhatAReaderHasMissed) {
  FakeEngine engine;
  const Server server(engine);
  const std::string id = json_of(server.ask("POST /v1/jobs", "", kSmall))["id"];
  const auto all = server.ask("GET /v1/jobs/" + id + "/events");
  EXPECT_THAT(all, HasSubstr("id: 1\nevent: queued"));
  EXPECT_THAT(all, HasSubstr("event: done"));
  const auto rest = server.ask("GET /v1/jobs/" + id + "/events", "last-event-id: 1\r\n");
  EXPECT_THAT(rest, Not(HasSubstr("event: queued")));
  EXPECT_THAT(rest, HasSubstr("event: done"));
  // each number that is left, and whoever knows it hears of the next one
  const auto kept = server.ask("GET /v1/jobs/" + id + "/events");
  std::vector<std::string> numbers;
  for (auto at = kept.find("\nid: "); at != kept.npos; at = kept.find("\nid: ", at + 1))
    numbers.push_back(kept.substr(at, kept.find('\n', at + 1) + 1 - at));
  ASSERT_GE(numbers.size(), 4u);
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    const auto number = std::to_string(std::atoi(numbers[i].c_str() + 5));
    const auto later = server.ask("GET /v1/jobs/" + id + "/events?after=" + number);
    ASSERT_NE(later.find("\nid: "), later.npos) << number;
    EXPECT_EQ(later.find("\nid: "), later.find(numbers[i + 1])) << later;
  }
  const auto none = server.ask("GET /v1/jobs/" + id + "/events?after=99999");
  EXPECT_EQ(status_of(none), 200) << "ends, as there will be nothing";
}

// A browser's EventSource returns to the address it was given, which is older than its header.
TEST(JobsApi, BelievesTheHeaderOfAReaderThatReturns) {
  FakeEngine engine;
  const Server server(engine);
  const std::string id = json_of(server.ask("POST /v1/jobs", "", kSmall))["id"];
  const auto path = "GET /v1/jobs/" + id + "/events";
  server.ask(path);
  EXPECT_THAT(server.ask(path + "?after=1"), HasSubstr("id: 2\nevent: started"));
  const auto rest = server.ask(path + "?after=1", "last-event-id: 2\r\n");
  EXPECT_THAT(rest, Not(HasSubstr("event: started")));
  EXPECT_THAT(rest, HasSubstr("event: picture"));
}

// A browser's EventSource asks again after each end of a stream; 204 makes it stop (WHATWG).
TEST(JobsApi, TellsReadersOfEventsToStopReconnecting) {
  FakeEngine engine;
  const Server server(engine);
  const std::string id = json_of(server.ask("POST /v1/jobs", "", kSmall))["id"];
  const auto path = "GET /v1/jobs/" + id + "/events";
  const auto all = server.ask(path);
  const auto last = all.rfind("id: ") + 4;
  const auto number = all.substr(last, all.find('\n', last) - last);
  EXPECT_EQ(status_of(server.ask(path, "last-event-id: " + number + "\r\n")), 204);
}

// Otherwise anybody could list the jobs of an address.
TEST(JobsApi, TellsWhenAQueuedJobWillStart) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine);
  const auto post = [&] {
    return json_of(server.ask("POST /v1/jobs", "", R"({"prompt": "a", "steps": 2})"));
  };
  const auto ask = [&](const std::string& id) { return json_of(server.ask("GET /v1/jobs/" + id)); };
  const auto first = post()["id"].get<std::string>();
  engine.wait_until_called(1);
  const auto second = post();
  EXPECT_EQ(second["jobs_before"], 1);
  const auto third = post()["id"].get<std::string>();
  EXPECT_TRUE(ask(third)["seconds_until_start"].is_null()) << "no step was measured yet";
  engine.release(2);
  engine.wait_until_called(2);
  const auto fourth = post();
  const auto until = [](const nlohmann::json& job) {
    return job["seconds_until_start"].get<double>();
  };
  EXPECT_GE(until(ask(third)), 0);
  EXPECT_GE(until(fourth), until(ask(third))) << "the third comes first";
  EXPECT_FALSE(ask(first).contains("seconds_until_start"));
  engine.finish();
}

TEST(JobsApi, KeepsUsersApartFromAddresses) {
  FakeEngine engine;
  const Server server(engine);
  server.ask("POST /v1/jobs", "", kSmall);
  server.ask("POST /v1/jobs", "", R"({"prompt": "a", "size": "16x16", "user": "me"})");
  server.ask("POST /v1/images/generations", "",
             R"({"prompt": "a", "size": "16x16", "user": "", "response_format": "url"})");
  const auto count = [&](const std::string& query) {
    return json_of(server.ask("GET /v1/jobs" + query))["jobs"].size();
  };
  EXPECT_EQ(count(""), 2u) << "no user and an empty one are the same";
  EXPECT_EQ(count("?user=me"), 1u);
  EXPECT_EQ(count("?user=127.0.0.1"), 0u);
}

TEST(JobsApi, KnowsOfNoOtherJobs) {
  FakeEngine engine;
  const Server server(engine);
  for (const auto* const line : {"GET /v1/jobs/0", "DELETE /v1/jobs/0", "GET /v1/jobs/0/events",
                                 "GET /v1/jobs/0/events?after=1", "GET /v1/jobs/0/pictures/0"})
    EXPECT_THAT(server.ask(line), HasSubstr("job_not_found")) << line;
}

// A list would have megabytes: 32,000 characters in each of 256 jobs.
TEST(JobsApi, ListsTheBeginningsOfPrompts) {
  FakeEngine engine;
  const Server server(engine);
  const auto times = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "\U0001F600";
    return text;
  };
  const auto post = [&](int characters) {
    const auto text = times(characters);
    const nlohmann::json wish = {
        {"prompt", text}, {"prompt_2", text}, {"negative_prompt", text}, {"size", "16x16"}};
    const auto answer = server.ask("POST /v1/jobs", "", wish.dump());
    EXPECT_EQ(status_of(answer), 202) << answer.substr(0, 1000);
    return json_of(answer)["id"].get<std::string>();
  };
  const auto listed = [&] { return json_of(server.ask("GET /v1/jobs"))["jobs"]; };
  post(200);
  const auto id = post(32'000);
  const auto jobs = listed();
  const auto whole = json_of(server.ask("GET /v1/jobs/" + id));
  for (const auto* const name : {"prompt", "prompt_2", "negative_prompt"}) {
    EXPECT_EQ(jobs[0]["request"][name], times(200)) << name;
    EXPECT_EQ(jobs[1]["request"][name], times(200) + "\u2026") << name;
    EXPECT_EQ(whole["request"][name], times(32'000)) << name;
  }
  EXPECT_FALSE(jobs[0].contains("prompts_cut"));
  EXPECT_EQ(jobs[1]["prompts_cut"], true);
  EXPECT_FALSE(whole.contains("prompts_cut"));
  for (int i = 0; i < 20; ++i) post(300);
  EXPECT_EQ(listed().size(), 22u) << "beside the reading of requests";
}

TEST(JobsApi, TellsAClientThatItHasItsShare) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  const Server server(engine, {}, {}, {.max_waiting_pictures = 4});
  const auto post = [&](const std::string& user) {
    return server.ask("POST /v1/jobs", "", R"({"prompt": "a", "user": ")" + user + "\"}");
  };
  post("a");
  engine.wait_until_called(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status_of(post("a")), 202);
  const auto refused = post("a");
  EXPECT_EQ(status_of(refused), 429);
  for (const auto* const words : {"three quarters", "3 pictures", "queue_full", "retry-after"})
    EXPECT_THAT(refused, HasSubstr(words));
  EXPECT_EQ(status_of(post("b")), 202);
  EXPECT_THAT(post("b"), HasSubstr("the queue is full: 4 pictures wait"));
  engine.finish();
}

TEST(JobsApi, SaysHowLongACancelledJobWaited) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  server.ask("POST /v1/jobs", "", kSmall);
  engine.wait_until_called(1);
  const std::string path =
      "/v1/jobs/" + std::string(json_of(server.ask("POST /v1/jobs", "", kSmall))["id"]);
  const auto waited = json_of(server.ask("DELETE " + path))["seconds_queued"];
  EXPECT_GT(waited, 0.0);
  EXPECT_EQ(json_of(server.ask("GET " + path))["seconds_queued"], waited) << "it waits no more";
}

TEST(JobsApi, NamesTheParameterThatIsNoNumber) {
  FakeEngine engine;
  const Server server(engine);
  const std::string path =
      "/v1/jobs/" + std::string(json_of(server.ask("POST /v1/jobs", "", kSmall))["id"]);
  const auto error_of = [](const std::string& answer) { return json_of(answer)["error"]; };
  const auto after = error_of(server.ask("GET " + path + "/events?after=x"));
  EXPECT_EQ(after["param"], "after");
  EXPECT_EQ(after["message"], "'after' should be a whole number, it is 'x'");
  EXPECT_EQ(error_of(server.ask("GET " + path + "/events", "last-event-id: x\r\n"))["param"],
            "last-event-id");
  const auto picture = error_of(server.ask("GET " + path + "/pictures/x"));
  EXPECT_TRUE(picture["param"].is_null()) << "no field, a part of the path";
  EXPECT_EQ(picture["message"], "the picture's number should be a whole number, it is 'x'");
}

TEST(JobsApi, CancelsAJobByItsName) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Server server(engine);
  const std::string id = json_of(server.ask("POST /v1/jobs", "", kSmall))["id"];
  engine.wait_until_called(1);
  EXPECT_EQ(status_of(server.ask("DELETE /v1/jobs/" + id)), 200);
  EXPECT_THAT(server.ask("GET /v1/jobs/" + id + "/events"), HasSubstr("event: cancelled"));
  EXPECT_EQ(status_of(server.ask("DELETE /v1/jobs/" + id)), 200) << "may be repeated";
}

}  // namespace braid::serve::jobs_api_test
