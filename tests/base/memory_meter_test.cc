// The most memory that was resident, and what is done where Linux does not tell.
#include "base/memory_meter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>

namespace braid {
namespace {

constexpr std::size_t kBlock = 64u << 20;

void use_memory() {
  const std::unique_ptr<char[]> block(new char[kBlock]);
  std::memset(block.get(), 1, kBlock);
  asm volatile("" : : "r"(block.get()) : "memory");  // it is really used
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
  std::filesystem::create_directories(folder / "clear_refs");  // a folder cannot be written
  std::ofstream(folder / "status") << "VmHWM:\t    20 kB\nVmRSS:\t    10 kB\n";
  MemoryMeter meter(folder);
  EXPECT_EQ(meter.take(), 20u * 1024);  // the peak since the start, which needs no reset
  EXPECT_FALSE(meter.is_exact());
  EXPECT_EQ(meter.take(), 10u * 1024);
  std::filesystem::remove_all(folder);
}

TEST(MemoryMeter, SaysNothingWhereNothingIsKnown) {
  MemoryMeter meter("/nowhere");
  EXPECT_EQ(meter.take(), 0u);
}

}  // namespace
}  // namespace braid
