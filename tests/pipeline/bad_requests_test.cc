// A bad request ends itself, not the engine: the next one gives the bytes of a fresh engine.
#include "bad_requests.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "base/error.h"
#include "host_memory.h"
#include "named_layout.h"
#include "own_ranks.h"
#include "resident_bytes.h"

namespace braid::bad_requests_test {

using testing::HasSubstr;

const NamedLayout kLayouts[] = {{"OneRank", {}},
                                {"Tp2", {.tp = 2}},
                                {"Ring2", {.ring = 2}},
                                {"Ulysses2", {.ulysses = 2}},
                                {"LayerSplit2", {.pp = 2}},
                                {"Cfg2Dp2", {.cfg = 2, .dp = 2}},
                                {"Ring2OneDecoder", {.ring = 2, .decode = DecodeRanks::kFirst}}};
const NamedLayout kFewLayouts[] = {kLayouts[1]};

// An engine shared by all tests of its layout, and the result of a fresh one.
struct Serving {
  explicit Serving(const Layout& layout)
      : good(bytes_of(Engine(demo_options(layout), {}).generate(good_request(), {}).pictures)),
        engine(demo_options(layout), {}) {}

  PictureBytes good;
  Engine engine;
};

class BadRequests : public testing::TestWithParam<NamedLayout> {
 protected:
  static const Serving& serving() {
    static std::map<std::string, Serving> by_layout;
    const auto& [name, layout] = GetParam();
    return by_layout.try_emplace(name, layout).first->second;
  }

  void expect_good() const {
    EXPECT_TRUE(bytes_of(engine_.generate(good_request(), {}).pictures) == good_);
  }
  void expect_survived(const std::map<std::string, BadRequest>& requests) const {
    for (const auto& [name, request] : requests) {
      SCOPED_TRACE(name);
      request(engine_);
      expect_good();
    }
  }

  const PictureBytes& good_ = serving().good;
  const Engine& engine_ = serving().engine;
};
INSTANTIATE_TEST_SUITE_P(Layouts, BadRequests, testing::ValuesIn(kFewLayouts), name_of_layout);
INSTANTIATE_TEST_SUITE_P(SlowLayouts, BadRequests, testing::ValuesIn(kLayouts), name_of_layout);

// No rank sees these requests, so a single good one suffices.
TEST_P(BadRequests, AreSurvivedThatAreWrong) {
  for (const auto& [name, request] : wrong_requests()) {
    SCOPED_TRACE(name);
    request(engine_);
  }
  expect_good();
}
TEST_P(BadRequests, AreSurvivedThatFail) { expect_survived(failing_requests()); }
TEST_P(BadRequests, AreSurvivedThatAreStopped) { expect_survived(stopped_requests()); }

// Takes minutes if other tests run beside it.
class SlowBadRequests : public BadRequests {};
INSTANTIATE_TEST_SUITE_P(Layouts, SlowBadRequests, testing::ValuesIn(kLayouts), name_of_layout);

// It runs out at places throughout the run, on whichever rank gets there. Where oneDNN's
// convolution finds no memory for its copies, LibTorch convolves without it: such a request ends
// with its picture.
TEST_P(SlowBadRequests, AreSurvivedWhoseMemoryRunsOut) {
  constexpr std::int64_t kPlaces = 25;
  auto& memory = HostMemory::get();
  const auto before = memory.num_allocations();
  expect_good();
  // the number of allocations varies between threads
  const auto count = (memory.num_allocations() - before) * 9 / 10;
  std::int64_t failed = 0;
  for (std::int64_t place = 0; place < kPlaces; ++place) {
    SCOPED_TRACE("after " + std::to_string(count * place / kPlaces) + " allocations");
    memory.run_out_after(count * place / kPlaces);
    try {
      expect_good();
    } catch (const std::exception&) {
      ++failed;
    }
    memory.act_after({});
    expect_good();
  }
  EXPECT_GE(failed, kPlaces - 2);
}

TEST_P(SlowBadRequests, LeaveNothingBehindInAHundredTimes) {
  if (std::string(GetParam().name) != "OneRank" && std::string(GetParam().name) != "Tp2")
    GTEST_SKIP() << "a test of ten seconds";
  std::vector<BadRequest> requests;
  for (const auto& kind : {wrong_requests(), failing_requests(), stopped_requests()})
    for (const auto& [name, request] : kind) requests.push_back(request);
  requests.push_back(without_memory_after(300));
  MemoryMeter meter;
  std::int64_t live = 0, resident = 0;
  for (std::size_t time = 0; time < 100; ++time) {
    requests[time % requests.size()](engine_);
    expect_good();
    if (time != 40) continue;
    live = HostMemory::get().live_bytes();
    resident = resident_bytes(meter);
  }
  EXPECT_EQ(HostMemory::get().live_bytes(), live);
  EXPECT_LT(resident_bytes(meter) - resident, 8 << 20);
}

// How much work follows a stop, in allocations: part of a step, or of a decode.
class StopsWithin : public testing::Test {
 protected:
  static Request request_with(int steps, int pictures) {
    auto request = good_request();
    request.steps = steps;
    request.num_images = request.batch_size = pictures;
    request.width = 400;  // 5 x 1 tiles
    return request;
  }
  // Allocations of a run of `request`, from the first to the last report of `phase`.
  static std::int64_t allocations(const Engine& engine, const Request& request, Phase phase) {
    std::int64_t first = 0, last = 0;
    Hooks hooks;
    hooks.progress = [&](const Progress& p) {
      auto& at = p.done == 0 ? first : last;
      if (p.phase == phase) at = HostMemory::get().num_allocations();
    };
    engine.generate(request, hooks);
    return last - first;
  }
  // Allocations after a stop that comes `after` allocations into the phase.
  static std::int64_t allocations_after_a_stop(const Engine& engine, const Request& request,
                                               Phase phase, std::int64_t after) {
    auto& memory = HostMemory::get();
    std::stop_source stop;
    std::int64_t at_stop = 0;
    const auto ask = [&] {
      stop.request_stop();
      at_stop = memory.num_allocations();
    };
    auto hooks = at_progress(phase, 0, [&] { memory.act_after(after, ask); });
    hooks.stop = stop.get_token();
    EXPECT_THROW(engine.generate(request, hooks), Cancelled);
    EXPECT_GT(at_stop, 0);
    return memory.num_allocations() - at_stop;
  }
};

TEST_F(StopsWithin, AStepOfEightBlocks) {
  for (const auto& layout : {Layout{}, Layout{.tp = 2}, Layout{.pp = 2}}) {
    const Engine engine(demo_options(layout), {});
    const auto request = request_with(1, 1);
    const auto step = allocations(engine, request, Phase::kDenoise);
    // the modulations come first: a third of the allocations
    for (const int share : {1, 4, 7, 12})
      EXPECT_LT(allocations_after_a_stop(engine, request, Phase::kDenoise, share * step / 16),
                step / 4)
          << "after " << share << " of 16 parts";
  }
}

TEST_F(StopsWithin, ADecodeOfFiveTiles) {
  for (const auto& layout : {Layout{}, Layout{.tp = 2}}) {
    const Engine engine(demo_options(layout), {});
    const auto request = request_with(1, 1);
    const auto decode = allocations(engine, request, Phase::kDecode);
    for (const std::int64_t share : {1, 3})
      EXPECT_LT(allocations_after_a_stop(engine, request, Phase::kDecode, share * decode / 5),
                decode * 2 / 5);
  }
}

TEST_F(StopsWithin, ALoad) {
  for (const auto& layout : {Layout{}, Layout{.tp = 2}}) {
    std::stop_source stop;
    std::int64_t done = 0, total = 0;
    Hooks hooks;
    hooks.stop = stop.get_token();
    hooks.progress = [&](const Progress& progress) {
      stop.request_stop();
      done = progress.done;
      total = progress.total;
    };
    EXPECT_THROW(Engine(demo_options(layout), hooks), Cancelled);
    EXPECT_GT(done, 0);
    EXPECT_LT(done, total / 2);
  }
}

// Ranks as processes. Each makes the same calls and prints what it sees.
class RankOfEngine : public testing::Test {
 protected:
  void SetUp() override {
    if (!read_launch()) GTEST_SKIP() << "run by EngineOfProcesses, once for each rank";
  }
  // A request that fails on all ranks because of the first rank's caller or memory.
  static void expect_end(const Engine& engine, const Hooks& hooks) {
    EXPECT_ANY_THROW(engine.generate(good_request(), hooks));
  }
};

std::string hash_of(const PictureBytes& bytes) {
  return text_of("pictures ", std::hash<std::string>()({bytes.begin(), bytes.end()}));
}

TEST_F(RankOfEngine, ServesAfterBadRequests) {
  auto options = demo_options({.tp = 2, .ranks = Ranks::kProcesses});
  const Engine engine(options, {});
  const int rank = read_launch()->rank;
  const auto say_pictures = [&] {
    const auto pictures = engine.generate(good_request(), {}).pictures;
    if (rank == 0) std::cout << hash_of(bytes_of(pictures)) << std::endl;
  };
  for (const auto& [name, request] : wrong_requests()) request(engine);
  say_pictures();
  for (const auto& kind : {failing_requests(), stopped_requests()})
    for (const auto& [name, request] : kind) {
      if (name.find("warning") != name.npos) continue;  // belongs to another request
      if (rank == 0) request(engine);
      if (rank == 1) {
        EXPECT_THROW(engine.generate(good_request(), {}), Error);
      }
      say_pictures();
    }
  for (int poor = 0; poor < 2; ++poor)
    for (const std::int64_t place : {3, 100, 400, 800}) {
      if (rank == poor) HostMemory::get().run_out_after(place);
      EXPECT_ANY_THROW(engine.generate(good_request(), {}));
      say_pictures();
    }
}

TEST(SlowEngineOfProcesses, ServesAfterBadRequests) {
  OwnRanks ranks(2, "RankOfEngine.ServesAfterBadRequests");
  const auto printed = ranks.finish(0), of_second = ranks.finish(1);
  const Engine threads(demo_options({.tp = 2}), {});
  const auto want = hash_of(bytes_of(threads.generate(good_request(), {}).pictures));
  int count = 0;
  for (auto at = printed.find(want); at != printed.npos; at = printed.find(want, at + 1)) ++count;
  EXPECT_EQ(count, 1 + 6 + 4 + 8) << printed;
  EXPECT_THAT(printed, HasSubstr("[  PASSED  ]"));
  EXPECT_THAT(of_second, HasSubstr("[  PASSED  ]")) << of_second;
}

}  // namespace braid::bad_requests_test
