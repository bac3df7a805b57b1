// Freed memory is returned to the system, at once or when nobody keeps it.
#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <memory>
#include <vector>

#include "resident_bytes.h"

namespace braid::free_memory_test {

// The limits that the C library was asked for, and the largest block that it agrees to keep.
struct Asked {
  std::vector<std::pair<int, int>> limits = {};
  int most = 1 << 30;
};
Asked& asked() {
  static Asked all;
  return all;
}

}  // namespace braid::free_memory_test

// Stands for the C library's.
extern "C" int mallopt(int what, int value) noexcept {
  auto& asked = braid::free_memory_test::asked();
  asked.limits.emplace_back(what, value);
  if (what == M_MMAP_THRESHOLD && value > asked.most) return 0;
  return reinterpret_cast<int (*)(int, int)>(::dlsym(RTLD_NEXT, "mallopt"))(what, value);
}

namespace braid::free_memory_test {

// Freed memory of blocks small enough for the heap, which the last block keeps from shrinking.
class FreeMemory : public testing::Test {
 protected:
  static constexpr std::int64_t kBlock = 64 << 10, kBlocks = 1024;

  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "sanitizers have memory of their own";
    std::vector<std::unique_ptr<char[]>> blocks;
    blocks.reserve(kBlocks);
    for (std::int64_t i = 0; i < kBlocks; ++i) {
      blocks.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
      std::memset(blocks.back().get(), 1, kBlock);
    }
    last_ = std::move(blocks.back());
    blocks.clear();
    before_ = resident_bytes(meter_);
    if (!meter_.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
  }
  void expect_given_back() {
    EXPECT_LT(resident_bytes(meter_) + kBlocks * kBlock / 4 * 3, before_);
  }

 private:
  std::unique_ptr<char[]> last_;
  MemoryMeter meter_;
  std::int64_t before_ = 0;
};

TEST_F(FreeMemory, IsGivenBackFromBetweenBlocksInUse) {
  give_back_free_memory();
  expect_given_back();
}

// What loading a model leaves is of other sizes than what computing needs.
TEST_F(FreeMemory, IsGivenBackBeforeAnyIsKept) {
  const KeepFreedMemory keep;
  expect_given_back();
}

TEST(LargeFreedMemory, IsKeptWhileSomebodyKeepsIt) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers have memory of their own";
  MemoryMeter meter;
  const auto before = resident_bytes(meter);
  if (!meter.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
  constexpr std::int64_t kBlock = 96 << 20, kMost = kBlock / 4, kLeast = kBlock / 4 * 3;
  const auto fill_and_free = [] {
    const auto block = std::make_unique_for_overwrite<char[]>(kBlock);
    std::memset(block.get(), 1, kBlock);
    asm volatile("" ::"r"(block.get()) : "memory");  // else the compiler drops all of this
  };
  fill_and_free();
  EXPECT_LT(resident_bytes(meter), before + kMost) << "nobody keeps it";
  {
    const KeepFreedMemory outer;
    {
      const KeepFreedMemory inner;
      fill_and_free();
    }
    if (resident_bytes(meter) < before + kMost && ::mallopt(M_MMAP_THRESHOLD, 1 << 30) == 0)
      GTEST_SKIP() << "this C library keeps no large blocks";
    EXPECT_GT(resident_bytes(meter), before + kLeast) << "the outer one still keeps it";
    fill_and_free();
    EXPECT_LT(resident_bytes(meter), before + kBlock + kMost)
        << "the second block takes the first one's place";
  }
  EXPECT_LT(resident_bytes(meter), before + kMost) << "it is given back";
  fill_and_free();
  EXPECT_LT(resident_bytes(meter), before + kMost) << "nobody keeps it any more";
}

// Stands for older versions of glibc, which keep no blocks above 32 MiB. Any limit that it takes
// ends the adaptation of its own.
TEST(LimitsOfFreedMemory, AreLeftAloneIfTheFirstIsRefused) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers refuse all limits";
  asked() = {.most = 32 << 20};
  { const KeepFreedMemory keep; }
  EXPECT_EQ(asked().limits, (std::vector{std::pair(M_MMAP_THRESHOLD, 1 << 30)}));
}

TEST(LimitsOfFreedMemory, EndWhereTheCLibrarysOwnDo) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers refuse all limits";
  asked() = {};
  { const KeepFreedMemory keep; }
  if (asked().limits.size() == 1) GTEST_SKIP() << "this C library keeps no large blocks";
  EXPECT_EQ(asked().limits, (std::vector{std::pair(M_MMAP_THRESHOLD, 1 << 30),
                                         {M_TRIM_THRESHOLD, 1 << 30},
                                         {M_MMAP_THRESHOLD, 32 << 20},
                                         {M_TRIM_THRESHOLD, 64 << 20}}));
}

}  // namespace braid::free_memory_test
