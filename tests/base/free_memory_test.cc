// Freed memory is returned to the system, at once or when nobody keeps it.
#include "base/free_memory.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/memory_meter.h"

namespace braid::free_memory_test {

bool is_sanitized() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") || ::dlsym(RTLD_DEFAULT, "__tsan_init");
}

TEST(FreeMemory, IsGivenBackFromBetweenBlocksInUse) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers have memory of their own";
  constexpr std::size_t kBlock = 64 << 10, kBlocks = 1024;  // small enough for the heap
  std::vector<std::unique_ptr<char[]>> blocks;
  blocks.reserve(kBlocks);
  for (std::size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    std::memset(blocks.back().get(), 1, kBlock);
  }
  const auto last = std::move(blocks.back());  // keeps the heap from shrinking
  blocks.clear();
  MemoryMeter meter;
  meter.take();  // resets the peak to what is resident
  const auto before = meter.take();
  if (!meter.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
  give_back_free_memory();
  meter.take();
  EXPECT_LT(meter.take() + kBlocks * kBlock / 4 * 3, before);
}

std::int64_t resident(MemoryMeter& meter) {
  meter.take();  // resets the peak to what is resident
  return std::int64_t(meter.take());
}

TEST(FreeMemory, IsKeptWhileSomebodyKeepsIt) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers have memory of their own";
  MemoryMeter meter;
  const auto before = resident(meter);
  if (!meter.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
  constexpr std::int64_t kBlock = 96 << 20, kMost = kBlock / 4, kLeast = kBlock / 4 * 3;
  const auto fill_and_free = [] {
    const auto block = std::make_unique_for_overwrite<char[]>(kBlock);
    std::memset(block.get(), 1, kBlock);
    asm volatile("" ::"r"(block.get()) : "memory");  // else the compiler drops all of this
  };
  fill_and_free();
  EXPECT_LT(resident(meter), before + kMost) << "nobody keeps it";
  {
    const KeepFreedMemory outer;
    {
      const KeepFreedMemory inner;
      fill_and_free();
    }
    if (resident(meter) < before + kMost && ::mallopt(M_MMAP_THRESHOLD, 1 << 30) == 0)
      GTEST_SKIP() << "this C library keeps no large blocks";
    EXPECT_GT(resident(meter), before + kLeast) << "the outer one still keeps it";
    fill_and_free();
    EXPECT_LT(resident(meter), before + kBlock + kMost)
        << "the second block takes the first one's place";
  }
  EXPECT_LT(resident(meter), before + kMost) << "it is given back";
  fill_and_free();
  EXPECT_LT(resident(meter), before + kMost) << "nobody keeps it any more";
}

}  // namespace braid::free_memory_test
