#include "pipeline/memory/offload.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "weights/paging/cpu_device.h"

namespace braid::offloaded_parts_test {

// Both slots are the same memory, so that a copy overwrites weights in use.
class OneSlotDevice : public CpuPageDevice {
 public:
  Slot allocate(std::int64_t bytes, Site site) override {
    if (slot_.id < 0) slot_ = CpuPageDevice::allocate(bytes, site);
    return slot_;
  }
  void free(Slot, Site) override {}

 private:
  Slot slot_ = {-1};
};

OffloadedParts parts_used(const Offload& offload, std::shared_ptr<PageDevice> device) {
  OffloadedParts parts(offload, at::kCPU, std::move(device));
  const auto pages = parts.transformer().pages;
  for (int i = 0; i < 4; ++i) {
    pages->add_group("blocks." + std::to_string(i));
    pages->add(at::full({16}, i, at::kFloat));
  }
  parts.finish();
  for (const int group : {0, 1, 2, 3, 0, 1, 2, 3}) {
    pages->enter(group);
    pages->leave(group);
  }
  return parts;
}

TEST(OffloadedParts, CheckTheOrderWhereAsked) {
  Offload offload{.transformer = OffloadMode::kBlock};
  EXPECT_NO_THROW(parts_used(offload, std::make_shared<OneSlotDevice>()).check_order());
  offload.checks_order = true;
  EXPECT_NO_THROW(parts_used(offload, std::make_shared<CpuPageDevice>()).check_order());
  EXPECT_THROW(parts_used(offload, std::make_shared<OneSlotDevice>()).check_order(), Error);
}

// Every run is checked so, not only loops that tests mark.
TEST(OffloadedParts, MayNotAllocateOnceAllAreLoaded) {
  auto parts = parts_used({.transformer = OffloadMode::kBlock, .checks_order = true},
                          std::make_shared<CpuPageDevice>());
  const auto late = parts.transformer().pages;
  late->add_group("late");
  late->add(at::full({16}, 1, at::kFloat));
  EXPECT_NO_THROW(parts.check_order());
  late->finish();
  EXPECT_THROW(parts.check_order(), Error);
}

}  // namespace braid::offloaded_parts_test
