// The environment set before LibTorch is loaded, by the GPUs that the kernel lists.
#include "app/machine/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/control_group.h"

namespace braid::environment_test {

using testing::Contains;
using testing::Key;
using testing::Not;
using testing::Pair;

std::map<std::string, std::string> wanted_for(std::vector<std::string> architectures) {
  std::vector<GpuNode> gpus;
  for (const auto& architecture : architectures)
    gpus.push_back({int(gpus.size()) + 1, architecture, 16'000'000'000});
  std::map<std::string, std::string> wanted;
  for (const auto& variable : wanted_environment(gpus, {})) {
    EXPECT_FALSE(variable.why.empty());
    EXPECT_TRUE(wanted.emplace(variable.name, variable.value).second) << variable.name << " twice";
  }
  return wanted;
}

TEST(Environment, IsLeftAloneWhereThereIsNoGpu) {
  EXPECT_THAT(wanted_for({}), testing::ElementsAre(Pair("OMP_WAIT_POLICY", "passive"),
                                                   Pair("TORCH_CPP_LOG_LEVEL", "ERROR")));
  EXPECT_EQ(wanted_for({"gfx942"}).size(), 2u);
}

TEST(Environment, HasNoMoreThreadsThanAContainerGetsTimeFor) {
  const auto threads = [](double cpus) {
    for (const auto& variable : wanted_environment({}, cpus))
      if (variable.name == "OMP_NUM_THREADS") return variable.value;
    return std::string("those of LibTorch");
  };
  EXPECT_EQ(threads(1e6), "those of LibTorch");
  EXPECT_EQ(threads(0.5), usable_cpus({}) > 1 ? "1" : "those of LibTorch");
}

TEST(Environment, HasWhatRdna3Needs) {
  for (const auto* const gpu : {"gfx1100", "gfx1101", "gfx1102"}) {
    const auto wanted = wanted_for({gpu});
    EXPECT_THAT(wanted, Contains(Pair("TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "1"))) << gpu;
    EXPECT_THAT(wanted, Contains(Pair("PYTORCH_ALLOC_CONF", "expandable_segments:True"))) << gpu;
    EXPECT_THAT(wanted, Not(Contains(Key("HSA_OVERRIDE_GFX_VERSION_1")))) << gpu;
  }
  EXPECT_THAT(wanted_for({"gfx1101"}), Contains(Pair("TORCH_BLAS_PREFER_HIPBLASLT", "1")));
}

// LibTorch calls AOTriton's kernels experimental on these too: without the switch it has only
// separate products.
TEST(Environment, HasWhatRdna4AndLateRdna3Need) {
  for (const auto* const gpu : {"gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201"}) {
    const auto wanted = wanted_for({gpu});
    EXPECT_THAT(wanted, Contains(Pair("TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "1"))) << gpu;
    EXPECT_THAT(wanted, Contains(Pair("PYTORCH_ALLOC_CONF", "expandable_segments:True"))) << gpu;
    EXPECT_THAT(wanted, Not(Contains(Key("HSA_OVERRIDE_GFX_VERSION_1")))) << gpu;
  }
  EXPECT_THAT(wanted_for({"gfx90a"}), Not(Contains(Key("PYTORCH_ALLOC_CONF"))));
}

// An integrated GPU beside a card: only the one that needs it claims to be another.
TEST(Environment, ClaimsAnotherArchitectureForTheGpuThatNeedsIt) {
  const auto wanted = wanted_for({"gfx1100", "gfx1036", "gfx1103"});
  EXPECT_THAT(wanted, Not(Contains(Key("HSA_OVERRIDE_GFX_VERSION_1"))));
  EXPECT_THAT(wanted, Contains(Pair("HSA_OVERRIDE_GFX_VERSION_2", "10.3.0")));
  EXPECT_THAT(wanted, Contains(Pair("HSA_OVERRIDE_GFX_VERSION_3", "11.0.0")));
  EXPECT_THAT(wanted, Not(Contains(Key("HSA_OVERRIDE_GFX_VERSION"))));
}

TEST(Environment, KeepsWhatTheUserHasSet) {
  ::setenv("BRAID_TEST_MINE", "mine", 1);
  ::setenv("BRAID_TEST_OLD_NAME", "mine", 1);
  ::unsetenv("BRAID_TEST_NEW");
  ::unsetenv("BRAID_TEST_RENAMED");
  set_environment({{"BRAID_TEST_MINE", "braid's", "why"},
                   {"BRAID_TEST_NEW", "braid's", "why"},
                   {"BRAID_TEST_RENAMED", "braid's", "why", {"BRAID_TEST_OLD_NAME"}}});
  EXPECT_STREQ(std::getenv("BRAID_TEST_MINE"), "mine");
  EXPECT_STREQ(std::getenv("BRAID_TEST_NEW"), "braid's");
  EXPECT_EQ(std::getenv("BRAID_TEST_RENAMED"), nullptr);
  EXPECT_EQ(who_set("BRAID_TEST_MINE"), SetBy::kUser);
  EXPECT_EQ(who_set("BRAID_TEST_NEW"), SetBy::kBraid);
  EXPECT_EQ(who_set("BRAID_TEST_RENAMED"), SetBy::kNobody);
}

}  // namespace braid::environment_test
