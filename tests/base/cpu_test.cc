#include "base/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "message_of.h"

namespace braid::cpu_test {

using testing::HasSubstr;

// Processors, by their features beyond the previous one.
const std::set<std::string> kHaswell{"sse4_2", "avx", "avx2", "fma", "f16c"};
std::set<std::string> with(std::set<std::string> flags, const std::set<std::string>& more) {
  flags.insert(more.begin(), more.end());
  return flags;
}
const auto kSkylake = with(kHaswell, {"avx512f", "avx512bw", "avx512vl", "avx512dq"});
const auto kIceLake = with(kSkylake, {"avx512_vnni"});
const auto kZen4 = with(kIceLake, {"avx512_bf16"});
const auto kSapphireRapids = with(kZen4, {"amx_tile", "amx_bf16", "amx_int8"});

std::string refusal(const std::set<std::string>& flags, const std::string& isa) {
  return message_of([&] { limit_cpu({.model = "", .flags = flags}, isa); });
}

TEST(CpuIsa, IsTheLastStepThatIsThereWithAllBeforeIt) {
  const auto isa_of = [](const std::set<std::string>& flags) {
    return std::string(isa_name(Cpu{.model = "", .flags = flags}.isa()));
  };
  EXPECT_EQ(isa_of({}), "baseline");
  EXPECT_EQ(isa_of({"asimd", "bf16"}), "baseline");
  EXPECT_EQ(isa_of({"avx", "avx2"}), "baseline");  // without fma
  EXPECT_EQ(isa_of(kHaswell), "avx2");
  EXPECT_EQ(isa_of(kSkylake), "avx512");
  EXPECT_EQ(isa_of(kIceLake), "avx512_vnni");
  EXPECT_EQ(isa_of(kZen4), "avx512_bf16");
  EXPECT_EQ(isa_of(kSapphireRapids), "amx");
  EXPECT_EQ(isa_of(with(kHaswell, {"avx512f", "amx_tile"})), "avx2");
}

TEST(CpuIsa, CanBeLimitedToAnyThatTheProcessorHas) {
  const Cpu all{.model = "", .flags = kSapphireRapids};
  EXPECT_EQ(limit_cpu(all, "baseline").flags, (std::set<std::string>{"sse4_2", "avx", "f16c"}));
  EXPECT_EQ(limit_cpu(all, "avx2").flags, kHaswell);
  EXPECT_EQ(limit_cpu(all, "avx512").flags, kSkylake);
  EXPECT_EQ(limit_cpu(all, "avx512_vnni").flags, kIceLake);
  EXPECT_EQ(limit_cpu(all, "avx512_bf16").flags, kZen4);
  EXPECT_EQ(limit_cpu(all, "amx").flags, kSapphireRapids);
}

TEST(CpuIsa, LimitsBfloat16Too) {
  EXPECT_TRUE(limit_cpu({.model = "", .flags = kZen4}, "avx512_bf16").has_bfloat16());
  EXPECT_FALSE(limit_cpu({.model = "", .flags = kSapphireRapids}, "avx512_vnni").has_bfloat16());
  EXPECT_FALSE(limit_cpu({.model = "", .flags = kHaswell}, "baseline").is_fast_in_bfloat16());
  EXPECT_FALSE(limit_cpu({.model = "", .flags = {"asimd", "bf16"}}, "baseline").has_bfloat16());
}

TEST(CpuIsa, HasFastPairsWhereNobodySaysIntel) {
  const auto is_fast = [](const char* model, const std::set<std::string>& flags) {
    return Cpu{.model = model, .flags = flags}.has_fast_pairs();
  };
  EXPECT_TRUE(is_fast("AMD EPYC 9004", kZen4));
  EXPECT_FALSE(is_fast("AMD EPYC 7003", kIceLake));
  EXPECT_FALSE(is_fast("Intel(R) Xeon(R) Processor", kZen4));
  const Cpu intel{.model = "Intel(R) Xeon(R) Processor", .flags = kSapphireRapids};
  EXPECT_TRUE(limit_cpu(intel, "avx512_bf16").has_fast_pairs());
  EXPECT_FALSE(limit_cpu(intel, "avx512").has_fast_pairs());
}

TEST(CpuIsa, IsNeverMoreThanTheProcessorHas) {
  EXPECT_EQ(refusal(kHaswell, "avx512"), "BRAID_ISA is avx512, this processor has avx2 at most");
  EXPECT_EQ(refusal(kZen4, "amx"), "BRAID_ISA is amx, this processor has avx512_bf16 at most");
  EXPECT_EQ(refusal(kZen4, "avx512_bf16"), "");
}

TEST(CpuIsa, IsOneOfTheNamesOnly) {
  const std::string names = "baseline, avx2, avx512, avx512_vnni, avx512_bf16, amx";
  EXPECT_EQ(refusal(kZen4, "AVX2"), "BRAID_ISA should be one of " + names + ", it is 'AVX2'");
  EXPECT_THAT(refusal(kZen4, ""), HasSubstr("it is ''"));
}

}  // namespace braid::cpu_test
