// Which groups stay on the device, and what is waited for with the others.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "weights/paging/cpu_device.h"
#include "weights/paging/page_layout.h"
#include "weights/paging/pages.h"

namespace braid::residency_test {

// Two clocks instead of two streams: real Pages, no real time. A copy takes its bytes over `speed`.
class ClockDevice : public PageDevice {
 public:
  explicit ClockDevice(double speed) : speed_(speed) {}

  bool is_asynchronous() const override { return true; }
  Slot allocate(std::int64_t bytes, Site) override {
    slots_.push_back(aligned_bytes(bytes));
    return {int(slots_.size()) - 1};
  }
  void free(Slot, Site) override {}
  Tensor memory(Slot slot) const override { return slots_[std::size_t(slot.id)]; }
  Event make_event(Site) override {
    events_.push_back(0);
    return {int(events_.size()) - 1};
  }
  void record(Event event, StreamName stream, Site) override {
    events_[std::size_t(event.id)] = clock(stream);
  }
  void wait(StreamName stream, Event event, Site) override {
    clock(stream) = std::max(clock(stream), events_[std::size_t(event.id)]);
  }
  void copy(StreamName stream, Slot, const PageBytes& from, Site) override {
    if (stream == StreamName::kCopy) copies_ += double(from.size) / speed_;
  }
  void use(StreamName, Slot, const PageBytes&, Site) override {}
  void synchronize(Event, Site) override {}

  void compute(double time) { computations_ += time; }
  double now() const { return computations_; }

 private:
  double& clock(StreamName stream) {
    return stream == StreamName::kCompute ? computations_ : copies_;
  }

  double speed_, computations_ = 0, copies_ = 0;
  std::vector<Tensor> slots_;
  std::vector<double> events_;
};

// FLUX.1: 19 double blocks with twice the bytes of 38 single ones. All compute for the time 1.
constexpr int kDoubles = 19, kBlocks = 57;
constexpr std::int64_t kSingle = 4096;
std::int64_t block_bytes(int block) { return block < kDoubles ? 2 * kSingle : kSingle; }

std::vector<GroupCost> flux_blocks(int blocks_per_group) {
  std::vector<GroupCost> groups;
  for (int i = 0; i < kBlocks; ++i)
    groups.push_back({.bytes = block_bytes(i), .blocks = blocks_per_group});
  return groups;
}

std::int64_t bytes_staying(const std::vector<bool>& stay) {
  std::int64_t sum = 0;
  for (int i = 0; i < kBlocks; ++i) sum += stay[std::size_t(i)] ? block_bytes(i) : 0;
  return sum;
}

enum class Spread { kByCount, kByTime };

struct Kept {
  Spread spread;
  int resident;

  std::int64_t bytes() const {
    return bytes_staying(resident_groups(flux_blocks(int(spread == Spread::kByTime)), resident,
                                         Residency::kStrided));
  }
};

// The most groups by count that hold no fewer bytes.
Kept as_large_by_count(const Kept& by_time) {
  Kept by_count{Spread::kByCount, by_time.resident};
  while (by_count.bytes() < by_time.bytes()) ++by_count.resident;
  return by_count;
}

// The time of a step, once they all take the same. `speed`: single blocks copied while a block
// computes.
double time_of_step(const Kept& kept, double speed, int prefetch) {
  const auto device = std::make_shared<ClockDevice>(speed * double(kSingle));
  Pages pages(device, at::kCPU,
              {.prefetch = prefetch, .resident = kept.resident, .residency = Residency::kStrided});
  for (int i = 0; i < kBlocks; ++i) {
    pages.add_group("blocks." + std::to_string(i), PageUse::kRepeated,
                    int(kept.spread == Spread::kByTime));
    pages.add(at::zeros({block_bytes(i)}, at::kByte));
  }
  pages.finish();
  double began = 0;
  for (int step = 0; step < 6; ++step) {
    began = device->now();
    for (int i = 0; i < kBlocks; ++i) {
      pages.enter(i);
      device->compute(1);
      pages.leave(i);
    }
  }
  return device->now() - began;
}

// A single block's copy takes as long as a block computes. Half of the double blocks stay: nothing
// is waited for. By count as many bytes stay, a third of them where there was nothing to hide.
TEST(Residency, LeavesNothingToWaitForWhereTheCopiesHaveTime) {
  const Kept by_time{Spread::kByTime, 10}, by_count = as_large_by_count(by_time);
  EXPECT_NEAR(time_of_step(by_time, 1, 1), kBlocks, 0.01 * kBlocks);
  EXPECT_GT(time_of_step(by_count, 1, 1), 1.1 * kBlocks) << by_count.resident << " by count";
}

// The bound is that of any order: all that is computed, or all that is copied. What stays by time
// and by count differs by up to a double block, whose copy is allowed for.
TEST(Residency, WaitsNoLongerThanByCountWithAsManyBytes) {
  double worst_by_time = 1, worst_by_count = 1;
  for (const int prefetch : {1, 2})
    for (const double speed : {0.3, 0.5, 0.7, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0})
      for (const int resident : {3, 5, 8, 10, 12, 15, 20, 30, 40}) {
        const Kept by_time{Spread::kByTime, resident}, by_count = as_large_by_count(by_time);
        const auto bound = [&](const Kept& kept) {
          const auto copied = double(bytes_staying(std::vector(kBlocks, true)) - kept.bytes());
          return std::max(double(kBlocks), copied / double(kSingle) / speed);
        };
        const auto time = time_of_step(by_time, speed, prefetch);
        EXPECT_LE(time, time_of_step(by_count, speed, prefetch) + 2 / speed)
            << speed << ", " << prefetch << " ahead, " << resident << " stay";
        worst_by_time = std::max(worst_by_time, time / bound(by_time));
        worst_by_count =
            std::max(worst_by_count, time_of_step(by_count, speed, prefetch) / bound(by_count));
      }
  EXPECT_LT(worst_by_time, 1.11);
  EXPECT_GT(worst_by_count, 1.15);
}

TEST(Residency, KeepsExactlyAsManyAsAsked) {
  std::mt19937 random(7);
  for (int run = 0; run < 200; ++run) {
    std::vector<GroupCost> groups(1 + random() % 60);
    for (auto& group : groups)
      group = {.bytes = kSingle * std::int64_t(1 + random() % 9),
               .blocks = run % 2 == 0 ? 0 : int(1 + random() % 4)};
    for (int resident = 0; resident <= int(groups.size()); ++resident) {
      const auto stay = resident_groups(groups, resident, Residency::kStrided);
      EXPECT_EQ(std::count(stay.begin(), stay.end(), true), resident) << groups.size();
    }
  }
}

// More that stay never hold fewer bytes, which a search for the most that fit relies on.
TEST(Residency, OfMoreGroupsHoldsMoreBytes) {
  std::int64_t last = -1;
  for (int resident = 0; resident <= kBlocks; ++resident) {
    const auto bytes = Kept{Spread::kByTime, resident}.bytes();
    EXPECT_GT(bytes, last) << resident;
    last = bytes;
  }
}

TEST(Residency, OfGroupsAlikeIsEveryNth) {
  for (const int blocks : {0, 1, 3})
    for (const int count : {7, 57})
      for (int resident = 1; resident < count; ++resident) {
        const std::vector<GroupCost> groups(std::size_t(count),
                                            {.bytes = kSingle, .blocks = blocks});
        std::vector<bool> want(std::size_t(count), false);
        for (int i = 0; i < resident; ++i) want[std::size_t(i * count / resident)] = true;
        EXPECT_EQ(resident_groups(groups, resident, Residency::kStrided), want)
            << resident << " of " << count;
      }
}

// Layers take as long as they are large: neither large nor small ones stay first.
TEST(Residency, OfLayersIsEveryNthWhateverTheirSize) {
  std::vector<GroupCost> groups, alike(30, {.bytes = kSingle});
  for (int i = 0; i < 30; ++i) groups.push_back({.bytes = kSingle * (1 + i * i % 7)});
  for (int resident = 0; resident <= 30; ++resident)
    EXPECT_EQ(resident_groups(groups, resident, Residency::kStrided),
              resident_groups(alike, resident, Residency::kStrided));
}

}  // namespace braid::residency_test
