// Scratch memory grows without keeping what it outgrew.
#include "weights/scratch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/free_memory.h"
#include "resident_bytes.h"

namespace braid::scratch_test {

TEST(Scratch, KeepsNothingThatItOutgrew) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers have memory of their own";
  constexpr std::int64_t kMegabyte = 1 << 20;
  const KeepFreedMemory keep;
  MemoryMeter meter;
  const auto before = resident_bytes(meter);
  if (!meter.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
  Scratch scratch;
  std::vector<at::Tensor> beside;  // keep the heap from shrinking
  for (const std::int64_t megabytes : {24, 32, 40}) {
    scratch.take({megabytes * kMegabyte}, at::kByte, at::kCPU).fill_(1);
    beside.push_back(at::ones({1024}));
  }
  EXPECT_GT(resident_bytes(meter), before + 40 * kMegabyte * 9 / 10);
  EXPECT_LT(resident_bytes(meter), before + 52 * kMegabyte);
}

TEST(Scratch, OfNothingIsEmpty) {
  EXPECT_EQ(Scratch().take({0, 4}, at::kFloat, at::kCPU).numel(), 0);
}

}  // namespace braid::scratch_test
