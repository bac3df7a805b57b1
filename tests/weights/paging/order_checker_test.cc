// The checker: every race known from group offloading is found, and our code has none.
#include "weights/paging/order_checker.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "faulty_device.h"
#include "simulated_device.h"
#include "weights/paging/pages.h"

namespace braid::order_checker_test {

using testing::HasSubstr;
using testing::IsEmpty;
using namespace testing_pages;
using Kind = Hazard::Kind;

// Small groups, each of one tensor.
struct Steps {
  int groups = 5, steps = 3;
  PageOptions options = {.prefetch = 1};
};

std::vector<Hazard> hazards_of(std::shared_ptr<PageDevice> device, Race race, const Steps& s) {
  const auto checker = std::make_shared<OrderChecker>(std::move(device));
  Pages pages(std::make_shared<FaultyDevice>(checker, race), at::kCPU, s.options);
  for (int i = 0; i < s.groups; ++i) {
    pages.add_group("blocks." + std::to_string(i));
    pages.add(at::full({16}, i, at::kFloat));
  }
  pages.finish();
  for (int step = 0; step < s.steps; ++step) {
    checker->enter_loop();
    for (int group = 0; group < s.groups; ++group) {
      pages.enter(group);
      pages.leave(group);
    }
    checker->leave_loop();
  }
  return checker->hazards();
}

struct Known {
  const char* name;  // as numbered in the notes on group offloading
  Race race;
  Kind kind;
};

class KnownRaces : public testing::TestWithParam<Known> {};

TEST_P(KnownRaces, AreReportedWithBothSites) {
  const auto device = std::make_shared<SimulatedDevice>(1, std::chrono::microseconds(50));
  const auto hazards = hazards_of(device, GetParam().race, {.options = {.prefetch = 2}});
  ASSERT_THAT(hazards, testing::Not(IsEmpty()));
  std::set<Kind> kinds;
  for (const auto& hazard : hazards) kinds.insert(hazard.kind);
  EXPECT_TRUE(kinds.contains(GetParam().kind)) << hazards.front().sentence;
  EXPECT_THAT(hazards.front().sentence, testing::ContainsRegex("pages.cc:[0-9]+"));
}

INSTANTIATE_TEST_SUITE_P(
    Each, KnownRaces,
    testing::Values(Known{"G1", Race::kNoWaitForCopy, Kind::kReadAfterWrite},
                    Known{"G2", Race::kScalesStay, Kind::kStale},
                    Known{"G3", Race::kUseOnWrongStream, Kind::kWriteAfterRead},
                    Known{"G4", Race::kFreedBeforeUse, Kind::kUseAfterFree},
                    Known{"G5", Race::kBuffersStay, Kind::kStale},
                    Known{"G6", Race::kOtherFile, Kind::kStale},
                    Known{"G7", Race::kFreedOnCopyStream, Kind::kUseAfterFree},
                    Known{"G9", Race::kWaitForNext, Kind::kNeedlessWait},
                    Known{"G10", Race::kBlockingCopy, Kind::kHostWait},
                    Known{"G11", Race::kLoadedTwice, Kind::kNeedlessCopy},
                    Known{"G12", Race::kNotInTracedOrder, Kind::kStale},
                    Known{"no_wait_for_use", Race::kNoWaitForUse, Kind::kWriteAfterRead}),
    [](const auto& info) { return info.param.name; });

TEST(OrderChecker, NamesBothSides) {
  const auto hazards = hazards_of(std::make_shared<SimulatedDevice>(), Race::kNoWaitForCopy, {});
  EXPECT_THAT(hazards.front().sentence,
              testing::MatchesRegex("the use of blocks.0 at pages.cc:[0-9]+ does not wait for the "
                                    "copy of blocks.0 at pages.cc:[0-9]+"));
}

TEST(OrderChecker, FindsNothingWhereAllIsInOrder) {
  const auto device = std::make_shared<SimulatedDevice>(1, std::chrono::microseconds(50));
  EXPECT_THAT(hazards_of(device, Race::kNone, {}), IsEmpty());
  device->finish();
  EXPECT_EQ(device->num_wrong(), 0);
}

// A missing wait also shows as wrong bytes: the simulated device does race.
TEST(SimulatedDevice, ShowsARaceAsWrongBytes) {
  const auto device = std::make_shared<SimulatedDevice>(1, std::chrono::microseconds(20000));
  hazards_of(device, Race::kNoWaitForCopy, {.groups = 12});
  device->finish();
  EXPECT_GT(device->num_wrong(), 0);
}

// One random run: sizes, slots, residency and order are drawn; groups are skipped
// and repeated.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed) : random_(seed) {}

  std::vector<Hazard> run(std::shared_ptr<PageDevice> device) {
    const auto checker = std::make_shared<OrderChecker>(std::move(device));
    const int groups = 1 + below(7);
    Pages pages(checker, at::kCPU,
                {.prefetch = below(4),
                 .resident = below(3) == 0 ? below(groups + 1) : 0,
                 .residency = below(2) ? Residency::kStrided : Residency::kLeading});
    for (int i = 0; i < groups; ++i) {
      pages.add_group("blocks." + std::to_string(i));
      pages.add(at::full({1 + below(40)}, i, at::kFloat));
    }
    pages.finish();
    std::vector<int> order(std::size_t(groups), 0);
    std::iota(order.begin(), order.end(), 0);
    if (below(2)) std::shuffle(order.begin(), order.end(), random_);
    for (int step = 1 + below(3); step > 0; --step) {
      checker->enter_loop();
      for (const int group : order) use(pages, below(8) ? group : below(groups));
      checker->leave_loop();
    }
    return checker->hazards();
  }

 private:
  int below(int n) { return int(random_() % std::uint64_t(n)); }
  void use(Pages& pages, int group) {
    if (below(10) == 0) return;
    pages.enter(group);
    pages.leave(group);
  }
  std::mt19937_64 random_;
};

void expect_in_order(std::uint64_t first_seed, std::uint64_t end) {
  for (auto seed = first_seed; seed < end; ++seed) {
    const auto device =
        std::make_shared<SimulatedDevice>(seed, std::chrono::microseconds(seed % 50 == 0 ? 30 : 0));
    const auto hazards = Schedule(seed).run(device);
    device->finish();
    ASSERT_THAT(hazards, IsEmpty()) << "seed " << seed << ": " << hazards.front().sentence;
    ASSERT_EQ(device->num_wrong(), 0) << "seed " << seed;
  }
}

TEST(RandomSchedules, AThousandAreInOrder) { expect_in_order(0, 1000); }
TEST(SlowRandomSchedules, TenThousandAreInOrder) { expect_in_order(1000, 10'000); }

}  // namespace braid::order_checker_test
