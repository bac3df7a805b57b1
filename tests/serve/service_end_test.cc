// How a service ends: drained, cut short, while it loads, and when its engine is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "service_jobs.h"
#include "wait_until.h"

namespace braid::serve::service_end_test {

TEST(ServiceEnd, StopsWhenTheEngineIsLost) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Service service(engine.load(), {});
  start(service);
  const auto first = service.submit(order_of("runs"));
  const auto last = service.submit(order_of("is lost")), waiting = service.submit(order_of("a"));
  engine.finish();
  EXPECT_EQ(wait_for_end(*last), JobState::kFailed);
  EXPECT_EQ(wait_for_end(*waiting), JobState::kFailed) << "nobody waits for ever";
  EXPECT_TRUE(wait_until([&] { return service.status().readiness == Readiness::kStopped; }));
  EXPECT_TRUE(service.failure());
  EXPECT_EQ(status_of_refusal(service, order_of("a")), 503);
}

TEST(ServiceEnd, DrainsWhatItHasAccepted) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Service service(engine.load(), {});
  start(service);
  const auto running = service.submit(order_of("a")), waiting = service.submit(order_of("b"));
  service.drain();
  EXPECT_EQ(service.status().readiness, Readiness::kDraining);
  EXPECT_EQ(status_of_refusal(service, order_of("c")), 503);
  engine.finish();
  EXPECT_EQ(wait_for_end(*running), JobState::kDone);
  EXPECT_EQ(wait_for_end(*waiting), JobState::kDone);
  EXPECT_TRUE(wait_until([&] { return service.status().readiness == Readiness::kStopped; }));
}

TEST(ServiceEnd, KeepsOtherRanksAliveAndTellsThemOfTheEnd) {
  FakeEngine engine;
  std::atomic<int> alive = 0, left = 0;
  auto backend = engine.backend();
  backend.keep_alive = [&] { ++alive; };
  backend.leave = [&] { ++left; };
  Service service([&](const Hooks&) { return std::vector<Backend>{backend}; },
                  {.heartbeat = std::chrono::milliseconds(10)});
  start(service);
  EXPECT_TRUE(wait_until([&] { return alive >= 2; }));
  const auto job = service.submit(order_of("a"));
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  job->mark_fetched(0);
  service.drain();
  service.wait();
  EXPECT_EQ(left, 1);
}

// Pictures are being decoded, or a prompt is with the enhancer.
TEST(ServiceEnd, DrainsWhatHasItsRoom) {
  FakeEngine engine;
  std::atomic<int> alive = 0;
  auto backend = engine.backend();
  backend.keep_alive = [&] { ++alive; };
  Service service([&](const Hooks&) { return std::vector<Backend>{backend}; },
                  {.heartbeat = std::chrono::milliseconds(10)});
  start(service);
  auto room = service.reserve("a", {.pictures = 1});
  auto given_up = service.reserve("b", {.pictures = 1});
  service.drain();
  EXPECT_TRUE(wait_until([&, before = int(alive)] { return alive >= before + 3; }));
  EXPECT_EQ(service.status().readiness, Readiness::kDraining);
  EXPECT_EQ(status_of_refusal(service, order_of("b")), 503);
  const auto job = service.submit(order_of("a"), std::move(room));
  EXPECT_EQ(wait_for_end(*job), JobState::kDone);
  job->mark_fetched(0);
  EXPECT_EQ(service.status().readiness, Readiness::kDraining);
  given_up = {};
  service.wait();
  EXPECT_EQ(service.status().readiness, Readiness::kStopped);
}

TEST(ServiceEnd, WaitsForNoRoomWhenItIsCutShort) {
  FakeEngine engine;
  Service service(engine.load(), {});
  start(service);
  auto room = service.reserve("a", {.pictures = 1});
  service.drain();
  service.stop();
  service.wait();
  EXPECT_THROW(service.require_not_stopped(), ApiError);
  EXPECT_THROW(service.submit(order_of("a"), std::move(room)), ApiError);
}

TEST(ServiceEnd, FreesItsModelsOnceNothingWaits) {
  FakeEngine engine(FakeEngine::Steps::kHeld);
  Service service(engine.load(), {});
  start(service);
  const auto running = service.submit(order_of("a")), waiting = service.submit(order_of("b"));
  engine.wait_until_called(1);
  EXPECT_TRUE(service.release_models());
  EXPECT_EQ(engine.num_releases(), 0);
  engine.finish();
  wait_for_end(*running);
  wait_for_end(*waiting);
  EXPECT_TRUE(wait_until([&] { return engine.num_releases() == 1; }));
}

TEST(ServiceEnd, StopsWhenARankIsLostWhileNothingIsAsked) {
  FakeEngine engine;
  auto backend = engine.backend();
  backend.keep_alive = [] { throw BackendLost("rank 1 is gone"); };
  backend.leave = [] { ADD_FAILURE() << "nobody is there to be told"; };
  Service service([&](const Hooks&) { return std::vector<Backend>{backend}; },
                  {.heartbeat = std::chrono::milliseconds(10)});
  service.start();
  service.wait();
  EXPECT_EQ(service.status().readiness, Readiness::kStopped);
  EXPECT_THROW(std::rethrow_exception(service.failure()), BackendLost);
}

// What tells of jobs may fail, as where memory runs out.
TEST(ServiceEnd, IsNotBroughtByALogThatFails) {
  FakeEngine engine;
  Service service(engine.load(), {.on_end = [](const Job&) { throw std::bad_alloc(); }});
  start(service);
  for (const std::string prompt : {"a", "b"})
    EXPECT_EQ(wait_for_end(*service.submit(order_of(prompt))), JobState::kDone) << prompt;
}

// Nobody is left who would make pictures.
TEST(ServiceEnd, IsAFailureIfTheModelsCannotBeLookedAfter) {
  FakeEngine engine;
  auto backend = engine.backend();
  backend.release = [] { throw std::bad_alloc(); };
  Service service([&](const Hooks&) { return std::vector<Backend>{backend}; }, {});
  start(service);
  ASSERT_TRUE(service.release_models());
  service.wait();
  EXPECT_EQ(service.status().readiness, Readiness::kStopped);
  EXPECT_THROW(std::rethrow_exception(service.failure()), std::bad_alloc);
}

TEST(ServiceEnd, IsAFailureIfARankIsLostJustBefore) {
  FakeEngine engine;
  auto backend = engine.backend();
  backend.leave = [] { throw BackendLost("rank 1 is gone"); };
  std::atomic<int> stopped = 0;
  Service service([&](const Hooks&) { return std::vector<Backend>{backend}; },
                  {.on_stopped = [&] { ++stopped; }});
  start(service);
  service.drain();
  service.wait();
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(service.status().readiness, Readiness::kStopped);
  ASSERT_TRUE(service.failure());
  EXPECT_THROW(std::rethrow_exception(service.failure()), BackendLost);
}

TEST(ServiceEnd, WaitsForThoseWhoComeForTheirPictures) {
  FakeEngine engine;
  Service service(engine.load(), {});
  start(service);
  const auto job = service.submit(order_of("a"));
  wait_for_end(*job);
  auto stopped = std::async(std::launch::async, [&] {
    service.drain();
    service.wait();
  });
  EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  job->mark_fetched(0);
  EXPECT_EQ(stopped.wait_for(std::chrono::seconds(5)), std::future_status::ready);
}

TEST(ServiceEnd, WaitsForNoPicturesOfAJobThatIsDeleted) {
  FakeEngine engine;
  Service service(engine.load(), {.keep = {.to_fetch = std::chrono::seconds(1000)}});
  start(service);
  const auto job = service.submit(order_of("a", 2));
  wait_for_end(*job);
  EXPECT_EQ(service.num_unfetched(), 2);
  service.cancel(job);
  EXPECT_EQ(job->status().state, JobState::kDone);
  EXPECT_EQ(service.num_unfetched(), 0);
  auto stopped = std::async(std::launch::async, [&] {
    service.drain();
    service.wait();
  });
  EXPECT_EQ(stopped.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  service.stop();
}

TEST(ServiceEnd, WaitsForThemOnlyForAWhile) {
  FakeEngine engine;
  Service service(engine.load(), {.keep = {.to_fetch = std::chrono::seconds(0)}});
  start(service);
  wait_for_end(*service.submit(order_of("a")));
  auto stopped = std::async(std::launch::async, [&] {
    service.drain();
    service.wait();
  });
  EXPECT_EQ(stopped.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  service.stop();
}

TEST(ServiceEnd, WaitsForNobodyWhenItIsCutShort) {
  FakeEngine engine;
  Service service(engine.load(), {});
  start(service);
  wait_for_end(*service.submit(order_of("a")));
  const auto began = Clock::now();
  service.stop();
  service.wait();
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(5));
}

TEST(ServiceEnd, IsToldOnceAsIsTheBeginning) {
  FakeEngine engine;
  std::atomic<int> ready = 0, stopped = 0;
  Service service(engine.load(), {.on_ready = [&] { ++ready; }, .on_stopped = [&] { ++stopped; }});
  start(service);
  service.drain();
  service.wait();
  EXPECT_EQ(ready, 1);
  EXPECT_EQ(stopped, 1);
}

// Whether or not its loading can be interrupted.
TEST(ServiceEnd, StopsWhileItLoads) {
  for (const bool hears : {true, false}) {
    std::promise<void> half_loaded, go_on;
    FakeEngine engine;
    Service service(
        [&](const Hooks& hooks) {
          hooks.progress({.phase = Phase::kLoad, .done = 1, .total = 2});
          half_loaded.set_value();
          if (!hears) go_on.get_future().wait();
          while (hears && !hooks.stop.stop_requested()) std::this_thread::yield();
          if (hears) throw Cancelled("stopped");
          return std::vector<Backend>{engine.backend()};
        },
        {});
    service.start();
    half_loaded.get_future().wait();
    EXPECT_EQ(service.status().loaded, 0.5);
    service.drain();
    go_on.set_value();
    auto stopped = std::async(std::launch::async, [&] { service.wait(); });
    EXPECT_EQ(stopped.wait_for(std::chrono::seconds(5)), std::future_status::ready);
    EXPECT_EQ(service.status().readiness, Readiness::kStopped);
    EXPECT_FALSE(service.failure());
    service.stop();
  }
}

TEST(ServiceEnd, ReportsAModelThatCannotBeLoaded) {
  Service service([](const Hooks&) -> std::vector<Backend> { throw InputError("no such file"); },
                  {});
  service.start();
  EXPECT_TRUE(wait_until([&] { return service.status().readiness == Readiness::kStopped; }));
  EXPECT_THROW(std::rethrow_exception(service.failure()), InputError);
}

}  // namespace braid::serve::service_end_test
