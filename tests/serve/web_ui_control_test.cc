// Clients of the web UI that end what runs, and that choose settings for all.
#include <gmock/gmock.h>

#include "service_jobs.h"
#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::web_ui_control_test {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint64_t> seeds_of(const Job& job) {
  std::vector<std::uint64_t> seeds;
  for (const auto& picture : job.status().pictures) seeds.push_back(picture.seed);
  return seeds;
}

class Skips : public testing::Test {
 protected:
  Skips() { start(service_); }
  // Returns once so many pictures are made or skipped, and the next one has begun.
  static void wait_for_picture(const Job& job, int number, int step) {
    const auto is_there = [&] {
      const auto status = job.status();
      return int(status.pictures.size()) + status.num_skipped == number && status.step == step &&
             status.phase == "denoise";
    };
    EXPECT_TRUE(wait_until(is_there));
  }

  FakeEngine engine_{FakeEngine::Steps::kHeld};
  Service service_{engine_.load(), {}};
};

// Pictures behind the one that is skipped keep their own seeds.
TEST_F(Skips, LeaveOneOutAndDrawTheRest) {
  const auto job = service_.submit(order_of("a", 4));  // of 4 steps each
  engine_.release(5);
  wait_for_picture(*job, 1, 1);
  job->request_skip();
  engine_.wait_until_called(2);
  engine_.finish();
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  EXPECT_THAT(seeds_of(*job), ElementsAre(7, 9, 10));
  EXPECT_THAT(job->status().warnings, ElementsAre("skipped: picture 2 of 4"));
  EXPECT_EQ(decode_png(*job->status().pictures[1].file, "").rgb.front(), 9);
}

TEST_F(Skips, OfAllPicturesEndTheJob) {
  const auto job = service_.submit(order_of("a", 2));
  for (int k = 0; k < 2; ++k) {
    engine_.wait_until_called(k + 1);
    engine_.release(1);
    wait_for_picture(*job, k, 1);
    job->request_skip();
  }
  EXPECT_EQ(wait_for_end(*job), JobState::kCancelled);
  EXPECT_THAT(job->status().warnings,
              ElementsAre("skipped: picture 1 of 2", "skipped: picture 2 of 2"));
}

TEST_F(Skips, OfTheLastPictureKeepTheOthers) {
  const auto job = service_.submit(order_of("a", 2));
  engine_.release(5);
  wait_for_picture(*job, 1, 1);
  job->request_skip();
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  EXPECT_THAT(seeds_of(*job), ElementsAre(7));
}

TEST_F(Skips, DoNothingBeforeAPictureIsBegun) {
  const auto first = service_.submit(order_of("runs"));
  const auto job = service_.submit(order_of("waits"));
  engine_.wait_until_called(1);
  job->request_skip();
  engine_.finish();
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  EXPECT_EQ(job->status().pictures.size(), 1u);
}

// A job that is cancelled is not begun again.
TEST_F(Skips, AndCancellingEndTheJob) {
  const auto job = service_.submit(order_of("a", 3));
  engine_.release(1);
  wait_for_picture(*job, 0, 1);
  job->request_skip();
  service_.cancel(job);
  EXPECT_EQ(wait_for_end(*job), JobState::kCancelled);
  EXPECT_TRUE(job->status().pictures.empty());
}

// Some of a picture's layers, or of a clip's frames, are no picture.
class SkipsOfLayers : public Skips {
 protected:
  // Draws 3 layers of each picture. Returns while a layer of the picture is still to come.
  std::shared_ptr<Job> begin(int pictures, int steps) {
    engine_.takes_a_step_each = true;
    auto order = order_of("a", pictures);
    order.request.layers = 3;
    order.request.steps = 2;
    auto job = service_.submit(std::move(order));
    engine_.wait_until_called(1);
    engine_.release(steps);
    engine_.wait_until_used();
    return job;
  }
};

TEST_F(SkipsOfLayers, KeepNoHalfPicture) {
  const auto job = begin(3, 9);  // one picture, then two steps and two layers
  EXPECT_THAT(seeds_of(*job), ElementsAre(7, 7, 7));
  job->request_skip();
  engine_.wait_until_called(2);
  engine_.finish();
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  EXPECT_THAT(seeds_of(*job), ElementsAre(7, 7, 7, 9, 9, 9));
  EXPECT_EQ(job->status().num_skipped, 3);
  EXPECT_THAT(job->status().warnings, ElementsAre("skipped: picture 2 of 3"));
}

TEST_F(SkipsOfLayers, KeepThoseThatAreFinishedOfARound) {
  engine_.num_together = 2;
  const auto job = begin(3, 6);  // two steps of two pictures, and one picture and a layer
  job->request_skip();
  engine_.wait_until_called(2);
  engine_.finish();
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  EXPECT_THAT(seeds_of(*job), ElementsAre(7, 7, 7, 9, 9, 9));
  EXPECT_THAT(job->status().warnings, ElementsAre("skipped: picture 2 of 3"));
}

TEST_F(SkipsOfLayers, AndCancellingLeavesNoHalfPicture) {
  const auto job = begin(2, 8);
  service_.cancel(job);
  EXPECT_EQ(wait_for_end(*job), JobState::kCancelled);
  EXPECT_THAT(seeds_of(*job), ElementsAre(7, 7, 7));
}

class WebUiControl : public testing::Test {
 protected:
  // The answer to four pictures of four steps, of which the second is ended by `what`.
  json ended_by(const std::string& what) {
    RawClient client(server_.port());
    client.send(Server::request_text(
        "POST /sdapi/v1/txt2img", "connection: close\r\n",
        R"({"prompt": "a", "steps": 4, "n_iter": 4, "seed": 7, "width": 16, "height": 16})"));
    engine_.wait_until_called(1);
    engine_.release(5);
    EXPECT_TRUE(wait_until([&] {
      const auto state = progress()["state"];
      return state["job_no"] == 1 && state["sampling_step"] == 1;
    }));
    EXPECT_EQ(status_of(server_.ask("POST /sdapi/v1/" + what)), 200);
    if (what == "skip") engine_.wait_until_called(2);
    engine_.finish();
    return json_of(client.read_all());
  }
  json progress() const { return json_of(server_.ask("GET /sdapi/v1/progress")); }

  FakeEngine engine_{FakeEngine::Steps::kHeld};
  Server server_{engine_};
};

// modules/processing.py: the loop goes on behind state.skipped, and ends at state.interrupted.
TEST_F(WebUiControl, SkipsAPicture) {
  const auto answer = ended_by("skip");
  EXPECT_EQ(answer["images"].size(), 3u);
  EXPECT_EQ(json::parse(answer["info"].get<std::string>())["all_seeds"], json({7, 9, 10}));
  EXPECT_EQ(answer["warnings"], json({"skipped: picture 2 of 4"}));
  EXPECT_EQ(progress()["state"]["job_no"], 0) << "nothing runs any more";
}

TEST_F(WebUiControl, InterruptsARequest) {
  const auto answer = ended_by("interrupt");
  EXPECT_EQ(answer["images"].size(), 1u);
  const auto info = json::parse(answer["info"].get<std::string>());
  EXPECT_EQ(info["all_seeds"], json({7}));
  const json told = {"interrupted: 1 of 4 pictures was drawn"};
  EXPECT_EQ(answer["warnings"], told);
  EXPECT_EQ(info["warnings"], told) << "some clients keep nothing else";
}

// Their clients take the numbers of partial pictures for those of the picture that is drawn.
TEST_F(WebUiControl, BeginsThePartialPicturesOfAStreamAnew) {
  RawClient client(server_.port());
  client.send(Server::request_text("POST /v1/images/generations", "connection: close\r\n",
                                   R"({"prompt": "a", "steps": 4, "n": 2, "size": "16x16",)"
                                   R"( "stream": true, "partial_images": 2})"));
  engine_.wait_until_called(1);
  engine_.release(1);
  ASSERT_TRUE(client.read_until(R"("partial_image_index":0)"));
  client.forget();
  server_.ask("POST /sdapi/v1/skip");
  engine_.wait_until_called(2);
  engine_.finish();
  const auto rest = client.read_all();
  EXPECT_THAT(rest, HasSubstr("skipped: picture 1 of 2"));
  EXPECT_THAT(rest, HasSubstr(R"("partial_image_index":0)"));
}

class WebUiOptions : public testing::Test {
 protected:
  std::string set(const json& options) const {
    return server_.ask("POST /sdapi/v1/options", "", options.dump());
  }
  std::vector<std::string> warnings() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(warnings_, {});
  }

  std::mutex mutex_;
  std::vector<std::string> warnings_;
  FakeEngine engine_{FakeEngine::Steps::kAtOnce, 2};
  Server server_{engine_, {}, {}, {.on_warning = [this](const std::string& sentence) {
                   const std::scoped_lock lock(mutex_);
                   warnings_.push_back(sentence);
                 }}};
};

TEST_F(WebUiOptions, ThatAreNotFollowedAreLogged) {
  warnings();  // of its start
  EXPECT_EQ(status_of(set({{"CLIP_stop_at_last_layers", 2}, {"sd_vae", "x"}, {"eta_ddim", 0}})),
            200);
  EXPECT_THAT(warnings(), ElementsAre("POST /sdapi/v1/options: the setting "
                                      "'CLIP_stop_at_last_layers' is not used; the setting "
                                      "'sd_vae' is not used"));
  EXPECT_EQ(status_of(set({{"sd_model_checkpoint", "demo1"}, {"CLIP_stop_at_last_layers", 1}})),
            200);
  EXPECT_THAT(warnings(), ElementsAre()) << "followed, or what clients always send";
  json many;
  for (int i = 0; i < 1000; ++i) many["s" + std::to_string(i)] = i + 1;
  EXPECT_EQ(status_of(set(many)), 200);
  const auto line = warnings();
  ASSERT_EQ(line.size(), 1u);
  EXPECT_THAT(line.front(), testing::EndsWith("; and 980 more"));
}

TEST_F(WebUiOptions, NameTheModelThatIsNotThere) {
  const auto answer = set({{"sd_model_checkpoint", "gone"}});
  EXPECT_EQ(status_of(answer), 404);
  EXPECT_EQ(json_of(answer)["error"]["param"], "sd_model_checkpoint");
  const json wish = {{"prompt", "a"}, {"override_settings", {{"sd_model_checkpoint", "gone"}}}};
  const auto drawn = server_.ask("POST /sdapi/v1/txt2img", "", wish.dump());
  EXPECT_EQ(json_of(drawn)["error"]["param"], "override_settings");
}

}  // namespace braid::serve::web_ui_control_test
