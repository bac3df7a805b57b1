#include "../../bench/instruction_peaks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/cpu.h"

namespace braid::instruction_peaks_test {

TEST(InstructionPeaks, AreThoseOfTheProcessor) {
  std::set<std::string> names;
  for (const auto& peak : instruction_peaks(2)) {
    EXPECT_GT(peak.per_second, 1e8) << peak.name;  // at least a hundred per microsecond
    names.insert(peak.name);
  }
  const auto& cpu = read_cpu();
  EXPECT_EQ(names.contains("avx2 fma"), cpu.has("avx2") && cpu.has("fma"));
  EXPECT_EQ(names.contains("avx512 fma"), cpu.has("avx512f"));
  EXPECT_EQ(names.contains("vdpbf16ps"), cpu.has("avx512_bf16"));
  EXPECT_EQ(names.contains("vpdpbusd"), cpu.has("avx512_vnni"));
}

TEST(InstructionPeaks, OfNumbersAreOfTheFastestThatMakesThem) {
  const std::vector<InstructionPeak> peaks{
      {"fma", at::kFloat, 4}, {"pairs", at::kBFloat16, 2}, {"fours", at::kChar, 9}};
  EXPECT_EQ(peak_of(peaks, at::kFloat)->name, "fma");
  EXPECT_EQ(peak_of(peaks, at::kBFloat16)->name, "fma");  // widened
  EXPECT_EQ(peak_of(peaks, at::kChar)->name, "fours");
  EXPECT_EQ(peak_of({{"pairs", at::kBFloat16, 8}, peaks[0]}, at::kBFloat16)->name, "pairs");
  EXPECT_EQ(peak_of({}, at::kFloat), nullptr);
}

}  // namespace braid::instruction_peaks_test
