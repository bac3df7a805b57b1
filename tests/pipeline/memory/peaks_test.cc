// The most memory ranks held, by phase.
#include "pipeline/memory/peaks.h"

#include <gtest/gtest.h>

#include "pipeline/engine/engine.h"

namespace braid::peaks_test {

constexpr std::int64_t kBlock = 64 << 20;

const PipelineOptions kOptions = {.model = BRAID_SOURCE_DIR "/models/demo", .layout = {.tp = 2}};
const Request kRequest = {.prompts = {"a"}, .width = 32, .height = 32, .steps = 1};

std::int64_t at(const BytesByPhase& bytes, Phase phase) { return bytes[std::size_t(phase)]; }

void use_memory() {
  const std::vector<char> block(kBlock, 1);
  asm volatile("" : : "r"(block.data()) : "memory");
}

TEST(Peaks, BelongToThePhaseThatHeldThem) {
  PeakMeter meter;
  meter.enter(Phase::kDenoise);
  use_memory();
  meter.enter(Phase::kDecode);
  if (!meter.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
  meter.enter(Phase::kDenoise);
  meter.finish();
  use_memory();  // outside any phase
  meter.enter(Phase::kText);
  meter.finish();
  const auto peaks = meter.gather({}, at::kCPU).front().resident;
  EXPECT_GE(at(peaks, Phase::kDenoise), at(peaks, Phase::kDecode) + kBlock / 2);
  EXPECT_GE(at(peaks, Phase::kDenoise), at(peaks, Phase::kText) + kBlock / 2);
  EXPECT_EQ(at(peaks, Phase::kLoad), 0);
  EXPECT_GT(meter.start_bytes(), 0);
}

TEST(Peaks, OfRanksThatShareAProcessAreToldOfEach) {
  const Engine engine(kOptions, {}, Measure::kPeaks);
  const auto ranks = engine.generate(kRequest, {}).facts.peaks.ranks;
  ASSERT_EQ(ranks.size(), 2u);
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank.device, "cpu");
    EXPECT_EQ(rank.resident_shared_by, 2);
    EXPECT_EQ(rank.resident, ranks.front().resident);
    for (const auto phase : kPhases) EXPECT_GT(at(rank.resident, phase), 0) << phase_name(phase);
    EXPECT_EQ(rank.allocated, BytesByPhase{});
  }
}

TEST(Peaks, AreLeftAloneUnlessAskedFor) {
  const Engine engine(kOptions, {});
  EXPECT_TRUE(engine.generate(kRequest, {}).facts.peaks.ranks.empty());
}

}  // namespace braid::peaks_test
