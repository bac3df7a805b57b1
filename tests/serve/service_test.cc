// Jobs from acceptance to end, without sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <semaphore>

#include "service_jobs.h"
#include "wait_until.h"

namespace braid::serve::service_test {

using testing::ElementsAre;

std::vector<std::string> names_of(const std::vector<Event>& events) {
  std::vector<std::string> names;
  for (const auto& event : events) names.push_back(event.name);
  return names;
}

TEST(Service, MakesPicturesAndTellsOfThem) {
  FakeEngine engine;
  Service service(engine.load(), {});
  start(service);
  const auto job = service.submit(order_of("a", 2));
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  const auto status = job->status();
  ASSERT_EQ(status.pictures.size(), 2u);
  EXPECT_EQ(status.pictures[1].seed, 8u);
  EXPECT_EQ(decode_png(*status.pictures[1].file, "").rgb.front(), 8);
  // only the newest preview and progress events
  EXPECT_THAT(names_of(job->events_after(0)), ElementsAre("queued", "started", "picture", "preview",
                                                          "progress", "picture", "done"));
  EXPECT_EQ(service.find(job->id()), job);
}

TEST(Service, GetsRoomBackThatNoJobTook) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Service service(engine.load(), {});
  start(service);
  service.submit(order_of("a"));
  engine.wait_until_called(1);
  const auto waiting = [&] { return service.status().waiting_pictures; };
  auto first = service.reserve("a", {.pictures = 2});
  auto second = std::move(first);
  first = {};
  EXPECT_EQ(waiting(), 2) << "what was moved is held by the other";
  second = service.reserve("a", {.pictures = 3});
  EXPECT_EQ(waiting(), 3);
  const auto job = service.submit(order_of("a", 3), std::move(second));
  second = {};
  EXPECT_EQ(waiting(), 3) << "it is the job's";
  service.cancel(job);
  EXPECT_EQ(waiting(), 0);
  engine.finish();
}

// A picture to start from skips some, and readers show how far a job is by both numbers.
TEST(Service, TellsOfTheStepsThatTheEngineTakes) {
  FakeEngine engine;
  engine.skipped_steps = 3;
  Service service(engine.load(), {});
  start(service);
  const auto job = service.submit(order_of("a"));
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  EXPECT_EQ(job->status().steps, 1);
  for (const auto& event : job->events_after(0))
    if (event.name == "progress" || event.name == "preview") {
      EXPECT_THAT(event.data, testing::HasSubstr(R"("step":1,"steps":1)")) << event.name;
    }
}

// Else a job of two pictures would seem to be over behind the first.
TEST(Service, CountsNoStepsOfThePictureBefore) {
  FakeEngine engine;
  engine.tells_of_decoded = true;
  Service service(engine.load(), {});
  start(service);
  const auto job = service.submit(order_of("a", 2));
  engine.finish();
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  for (const auto& event : job->events_after(0))
    if (event.name == "progress") {
      EXPECT_THAT(event.data, testing::HasSubstr(R"("picture":2,"pictures":2,"step":0)"));
      EXPECT_THAT(event.data, testing::HasSubstr(R"("eta":0.0,)"));
    }
}

// The strength tells how many, before the engine says anything.
TEST(Service, ForeseesTheStepsThatAStrengthLeaves) {
  auto order = order_of("a");
  order.request.steps = 10;
  order.request.pictures.strength = 0.3;
  EXPECT_EQ(Job("id", order).status().steps, 3);
}

TEST(Service, ReplaysEventsThatWereMissed) {
  FakeEngine engine;
  Service service(engine.load(), {});
  start(service);
  const auto job = service.submit(order_of("a"));
  wait_for_end(*job);
  const auto all = job->events_after(0);
  for (std::size_t k = 0; k < all.size(); ++k)
    EXPECT_EQ(job->events_after(all[k].id).size(), all.size() - k - 1);
}

TEST(Service, RefusesJobsWhileItLoads) {
  std::promise<void> go_on;
  FakeEngine engine;
  Service service(
      [&](const Hooks&) {
        go_on.get_future().wait();
        return std::vector<Backend>{engine.backend()};
      },
      {});
  EXPECT_EQ(status_of_refusal(service, order_of("a")), 503);
  EXPECT_THROW(service.backend(), ApiError);
  go_on.set_value();
  start(service);
  EXPECT_EQ(status_of_refusal(service, order_of("a")), 0);
}

TEST(Service, RefusesPicturesBeyondTheBoundAndSaysWhenToComeAgain) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Service service(engine.load(), {.max_waiting_pictures = 3});
  start(service);
  service.submit(order_of("runs"));
  engine.wait_until_called(1);
  service.submit(order_of("waits", 3));
  try {
    service.submit(order_of("one too many"));
    ADD_FAILURE() << "was accepted";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 429);
    EXPECT_EQ(error.code, "queue_full");
    EXPECT_GE(error.retry_after, 1);
  }
}

// Runs a job whose first step takes a tenth of a second, by which the service foretells others.
void run_slow_job(FakeEngine& engine, Service& service) {
  const auto job = service.submit(order_of("a"));
  engine.wait_until_called(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  engine.release(4);
  wait_for_end(*job);
}

// It says so by measured steps, but never so long that OpenAI's clients give up.
TEST(Service, SaysWhenTheRunningJobWillHaveEnded) {
  for (const auto& [steps, shortest, longest] : {std::tuple(400, 5, 119), {100'000, 120, 120}}) {
    FakeEngine engine(FakeEngine::Steps::kHeld);
    Service service(engine.load(), {.max_waiting_pictures = 1});
    start(service);
    run_slow_job(engine, service);
    auto slow = order_of("a");
    slow.request.steps = steps;
    const auto running = service.submit(slow);
    EXPECT_TRUE(wait_until([&] { return running->status().eta.has_value(); }));
    service.submit(order_of("waits"));
    try {
      service.require_room();
      ADD_FAILURE() << "there was room";
    } catch (const ApiError& error) {
      EXPECT_GE(error.retry_after, shortest);
      EXPECT_LE(error.retry_after, longest);
    }
  }
}

// Nothing is known of how long it takes, so it says neither 0 nor a second.
TEST(Service, DoesNotGuessHowLongItsFirstJobTakes) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Service service(engine.load(), {.max_waiting_pictures = 1});
  start(service);
  service.submit(order_of("runs"));
  engine.wait_until_called(1);
  const auto waiting = service.submit(order_of("waits"));
  EXPECT_EQ(service.seconds_until_start(*waiting), std::nullopt);
  EXPECT_EQ(service.status().seconds_until_idle, std::nullopt);
  try {
    service.require_room();
    ADD_FAILURE() << "there was room";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.retry_after, 10);
  }
}

TEST(Service, RefusesForGoodWhatItsQueueCouldNeverHave) {
  FakeEngine engine;
  Service service(engine.load(), {.max_waiting_pictures = 3});
  start(service);
  EXPECT_EQ(status_of_refusal(service, order_of("a", 4)), 400);
  EXPECT_EQ(status_of_refusal(service, order_of("a", 3)), 0);
}

TEST(Service, CancelsAWaitingJobAtOnceAndARunningOneWithinAStep) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Service service(engine.load(), {});
  start(service);
  const auto running = service.submit(order_of("runs")),
             waiting = service.submit(order_of("waits"));
  engine.wait_until_called(1);
  service.cancel(waiting);
  EXPECT_EQ(waiting->status().state, JobState::kCancelled);
  engine.release(2);
  service.cancel(running);
  EXPECT_TRUE(running->status().is_cancelling);
  EXPECT_EQ(wait_for_end(*running), JobState::kCancelled);
  engine.finish();
  const auto next = service.submit(order_of("next"));
  EXPECT_EQ(wait_for_end(*next), JobState::kDone) << "the engine serves the next one";
  service.cancel(next);
  EXPECT_EQ(next->status().state, JobState::kDone);
}

TEST(Service, FailsAJobAndServesTheNext) {
  FakeEngine engine;
  Service service(engine.load(), {});
  start(service);
  const auto bad = service.submit(order_of("fails"));
  EXPECT_EQ(wait_for_end(*bad), JobState::kFailed);
  EXPECT_EQ(bad->status().error, "the device is out of memory");
  EXPECT_EQ(wait_for_end(*service.submit(order_of("a"))), JobState::kDone);
}

TEST(Service, ForgetsFinishedJobsBeyondABound) {
  FakeEngine engine;
  std::counting_semaphore<> ended(0);
  Service service(engine.load(),
                  {.keep = {.jobs = 2}, .on_end = [&](const Job&) { ended.release(); }});
  start(service);
  std::vector<std::shared_ptr<Job>> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(service.submit(order_of("a")));
  for (int i = 0; i < 4; ++i) ended.acquire();
  EXPECT_EQ(service.find(jobs[0]->id()), nullptr) << "though nobody has come since";
  EXPECT_EQ(service.find(jobs[2]->id()), jobs[2]);
  EXPECT_EQ(service.jobs_of("me").size(), 3u) << "the last one besides";
  EXPECT_TRUE(service.jobs_of("somebody").empty());
}

TEST(Service, ForgetsFinishedJobsWhosePicturesTakeTooMuch) {
  FakeEngine engine;
  Service service(engine.load(), {.keep = {.bytes = 1}});
  start(service);
  const auto first = service.submit(order_of("a"));
  wait_for_end(*first);
  const auto second = service.submit(order_of("a"));
  EXPECT_EQ(service.find(first->id()), first) << "its client has just been told of its end";
  wait_for_end(*second);
  const auto third = service.submit(order_of("a"));
  EXPECT_EQ(service.find(first->id()), nullptr);
  EXPECT_EQ(service.find(second->id()), second);
  wait_for_end(*third);
}

TEST(Service, TellsHowLongIsLeftOnceItHasSeenSteps) {
  FakeEngine engine;
  Service service(engine.load(), {});
  start(service);
  wait_for_end(*service.submit(order_of("a")));
  EXPECT_TRUE(service.status().seconds_until_idle.has_value());
}

TEST(Service, CountsWhatIsLeftOfTheRunningJob) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Service service(engine.load(), {});
  start(service);
  run_slow_job(engine, service);
  const auto running = service.submit(order_of("a"));
  EXPECT_TRUE(wait_until([&] { return running->status().eta.has_value(); }));
  EXPECT_GT(*running->status().eta, 0.05);
  EXPECT_GE(service.status().seconds_until_idle, running->status().eta);
  engine.finish();
  wait_for_end(*running);
}

}  // namespace braid::serve::service_test
