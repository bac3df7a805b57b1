// Which devices run kernels that were compiled for a list of architectures.
#include "ops/gpu/architectures.h"

#include <gtest/gtest.h>

namespace braid::architectures_test {

using ops::gpu::runs_kernels;

struct Case {
  const char *architecture, *compiled;
  bool runs;
};

// NVIDIA, CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility" and
// "Family-Specific Features".
TEST(Architectures, OfNvidiaRunCodeOfTheirGenerationAndOlderPtx) {
  constexpr auto kDefault = "80-real,86-real,89-real,90-real,100-real,120";
  for (const auto& [architecture, compiled, runs] :
       std::vector<Case>{{"sm_75", kDefault, false},     {"sm_80", kDefault, true},
                         {"sm_86", kDefault, true},      {"sm_87", kDefault, true},
                         {"sm_103", kDefault, true},     {"sm_110", kDefault, false},
                         {"sm_120", kDefault, true},     {"sm_121", kDefault, true},
                         {"sm_130", kDefault, true},     {"sm_89", "90-real", false},
                         {"sm_90", "89-real", false},    {"sm_89", "90", false},
                         {"sm_90", "80-virtual", true},  {"sm_75", "80-virtual", false},
                         {"sm_90", "90a-real", true},    {"sm_100", "90a", false},
                         {"sm_103", "100f-real", true},  {"sm_103", "100a-real", false},
                         {"sm_110", "100f-real", false}, {"sm_120", "100f-virtual", false}})
    EXPECT_EQ(runs_kernels(architecture, compiled), runs) << architecture << " " << compiled;
}

// ROCm has no code that runs on another architecture, save its generic ones. Settings of a device
// stand behind a colon.
TEST(Architectures, OfAmdRunTheirOwnCode) {
  for (const auto& [architecture, compiled, runs] :
       std::vector<Case>{{"gfx1030", "gfx942,gfx1030", true},
                         {"gfx1031", "gfx942,gfx1030", false},
                         {"gfx90a:sramecc+:xnack-", "gfx90a", true},
                         {"gfx90a:sramecc+:xnack-", "gfx90a:xnack-,gfx942", true},
                         {"gfx1100", "gfx110", false},
                         {"gfx1103", "gfx11-generic", true}})
    EXPECT_EQ(runs_kernels(architecture, compiled), runs) << architecture << " " << compiled;
}

TEST(Architectures, ThatAreNotKnownAreTried) {
  for (const auto* const compiled : {"native", "all", "all-major", ""})
    EXPECT_TRUE(runs_kernels("sm_75", compiled)) << compiled;
  EXPECT_TRUE(runs_kernels("", "80-real"));
  EXPECT_TRUE(runs_kernels("gfx1031", "native"));
}

TEST(Architectures, HaveTheEntriesThatCMakeWants) {
  EXPECT_EQ(ops::gpu::entry_for("sm_89"), "89");
  EXPECT_EQ(ops::gpu::entry_for("gfx90a:sramecc+:xnack-"), "gfx90a");
}

}  // namespace braid::architectures_test
