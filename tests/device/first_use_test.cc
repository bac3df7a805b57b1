// What is done first with a device: LibTorch's allocator tells nothing of one that it has not made
// ready. Each test is a process of its own, in which nothing else came before.
#include <gtest/gtest.h>

#include "on_gpu.h"
#include "pipeline/devices/devices.h"
#include "pipeline/memory/peaks.h"

namespace braid::first_use_test {

class FirstUse : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
};

template <class Use>
void first_use(Use use) {
  EXPECT_EXIT(
      {
        use();
        std::exit(0);
      },
      testing::ExitedWithCode(0), ".*");
}

TEST_F(FirstUse, MayBeToMeasureItsPeaks) {
  first_use([] {
    PeakMeter meter;
    meter.watch(find_device("cuda:0"));
    meter.enter(Phase::kLoad);
    meter.finish();
  });
}

TEST_F(FirstUse, MayBeToAskWhatIsFree) {
  first_use([] {
    if (free_memory(find_device("cuda"), 1).free_bytes <= 0) std::exit(1);
  });
}

}  // namespace braid::first_use_test
