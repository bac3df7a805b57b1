// Freed memory is returned to the system.
#include "base/free_memory.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

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

}  // namespace braid::free_memory_test
