// Peak resident memory, and the fallbacks if Linux does not report it.
#include "base/memory_meter.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

namespace braid::memory_meter_test {

constexpr std::size_t kBlock = 64u << 20;

// Uses mapped memory and returns it to the system, which an allocator may defer.
void use_memory() {
  void* const block =
      ::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(block, MAP_FAILED);
  std::memset(block, 1, kBlock);
  asm volatile("" : : "r"(block) : "memory");  // forces real use
  ::munmap(block, kBlock);
}

TEST(MemoryMeter, SeesMemoryThatIsGoneAgain) {
  MemoryMeter meter;
  meter.take();
  if (!meter.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
  const auto before = meter.take();
  use_memory();
  const auto peak = meter.take();
  const auto after = meter.take();
  EXPECT_GE(peak, before + kBlock / 10 * 9);
  EXPECT_LT(after, before + kBlock / 2);
}

TEST(MemoryMeter, TakesWhatIsResidentWhereThePeakCannotBeReset) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("braid_meter_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "clear_refs");  // a folder cannot be written to
  std::ofstream(folder / "status") << "VmHWM:\t    20 kB\nVmRSS:\t    10 kB\n";
  MemoryMeter meter(folder);
  EXPECT_EQ(meter.take(), 20u * 1024);  // since the start, so no reset is needed
  EXPECT_FALSE(meter.is_exact());
  EXPECT_EQ(meter.take(), 10u * 1024);
  std::filesystem::remove_all(folder);
}

TEST(MemoryMeter, SaysNothingWhereNothingIsKnown) {
  MemoryMeter meter("/nowhere");
  EXPECT_EQ(meter.take(), 0u);
}

}  // namespace braid::memory_meter_test
