// The GPUs that the kernel lists, and those of them that a program may use.
#include "base/gpus.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <map>

#include "base/gpu_nodes.h"
#include "made_topology.h"
#include "temporary_folder.h"

namespace braid::gpus_test {

TEST(GpuNodes, AreReadFromTheKernelsList) {
  const MadeTopology made;
  made.add(0, 0, 64'000'000'000);
  made.add(1, 110001, 17'163'091'968);
  made.add(2, 90010, 68'702'699'520);
  made.add(10, 90402, 205'822'885'888);
  const auto gpus = read_gpu_nodes(made.path());
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[0].architecture, "gfx1101");
  EXPECT_EQ(gpus[0].bytes, 17'163'091'968u);
  EXPECT_EQ(gpus[1].architecture, "gfx90a");
  EXPECT_EQ(gpus[2].architecture, "gfx942");
  EXPECT_EQ(gpus[2].node, 10);
}

TEST(GpuNodes, ThatCannotBeReadAreLeftOut) {
  EXPECT_TRUE(read_gpu_nodes("/no/such/folder").empty());
  const MadeTopology made;
  made.add(1, 110000, 1);
  std::ofstream(made.path() / "nodes" / "1" / "properties") << "not what it should be";
  std::filesystem::create_directories(made.path() / "nodes" / "2");
  std::filesystem::create_directories(made.path() / "nodes" / "x");
  EXPECT_TRUE(read_gpu_nodes(made.path()).empty());
}

TEST(GpuNodes, AreNoneWithNegativeNumbersOrAPipe) {
  const MadeTopology made;
  made.add(-3, 110000, 1);
  made.add(1, 110000, 1);
  made.add(2, 110000, 1);
  std::ofstream(made.path() / "nodes" / "1" / "properties") << "gfx_target_version -110000\n";
  const auto pipe = made.path() / "nodes" / "2" / "properties";
  std::filesystem::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(read_gpu_nodes(made.path()).empty());
}

// A container that was given one of two cards. ROCm numbers what is left, CPUs included.
TEST(GpuNodes, AreCountedWhereTheProcessMayUseThem) {
  const MadeTopology made;
  const TemporaryFolder devices;
  made.add(0, 0, 64'000'000'000);
  made.add(1, 110000, 1);
  made.add(2, 100301, 1);
  made.add(3, 110003, 1);
  made.add(4, 100306, 1);
  const auto properties = [&](int node) {
    return made.path() / "nodes" / std::to_string(node) / "properties";
  };
  std::ofstream(properties(1), std::ios::trunc);  // as a device cgroup leaves it
  std::ofstream(properties(2), std::ios::app) << "drm_render_minor 129\n";
  std::ofstream(properties(3), std::ios::app) << "drm_render_minor 130\n";
  std::ofstream(devices / "renderD129");
  const auto gpus = read_gpu_nodes(made.path(), devices.path());
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0].architecture, "gfx1031");
  EXPECT_EQ(gpus[0].node, 1);
  EXPECT_EQ(gpus[1].architecture, "gfx1036");
  EXPECT_EQ(gpus[1].node, 2);
}

TEST(GpuNodes, HaveAnIdOfTheirOwn) {
  const MadeTopology made;
  made.add(1, 110000, 1);
  std::ofstream(made.path() / "nodes" / "1" / "properties", std::ios::app) << "unique_id 291\n";
  const auto gpus = read_gpu_nodes(made.path());
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].unique_id, 0x123u);
}

TEST(Gpus, AreChosenAndOrderedByTheirNumbers) {
  const std::vector<Gpu> all = {{"a", 1, "GPU-000000000000000a"}, {"b", 2, {}}, {"c", 3, {}}};
  const auto names = [&](const char* numbers) {
    std::string names;
    for (const auto& gpu : visible(all, numbers)) names += gpu.architecture;
    return names;
  };
  EXPECT_EQ(names(nullptr), "abc");
  EXPECT_EQ(names(""), "");
  EXPECT_EQ(names("2,0"), "ca");
  EXPECT_EQ(names("1,-1,0"), "b");
  EXPECT_EQ(names("0,7,1"), "a");
  EXPECT_EQ(names("GPU-1234"), "");
  EXPECT_EQ(names("1,GPU-000000000000000a"), "ba");
  EXPECT_EQ(names("1,,0"), "b");
}

// HIP, too, heeds CUDA's variable if its own is not set.
TEST(Gpus, AreThoseThatHipWouldSee) {
  const MadeTopology made;
  made.add(1, 110000, 1);
  made.add(2, 110001, 1);
  std::ofstream(made.path() / "nodes" / "1" / "properties", std::ios::app) << "unique_id 291\n";
  const std::map<std::string, std::string> cases = {
      {"CUDA_VISIBLE_DEVICES=1", "gfx1101"},
      {"HIP_VISIBLE_DEVICES=1", "gfx1101"},
      {"ROCR_VISIBLE_DEVICES=1", "gfx1101"},
      {"ROCR_VISIBLE_DEVICES=GPU-0000000000000123", "gfx1100"}};
  ::setenv("BRAID_KFD_TOPOLOGY", made.path().c_str(), 1);
  if (find_gpus().size() != 2) GTEST_SKIP() << "this machine's own GPUs come first";
  for (const auto& [variable, architecture] : cases) {
    const auto name = variable.substr(0, variable.find('='));
    ::setenv(name.c_str(), variable.substr(name.size() + 1).c_str(), 1);
    const auto gpus = find_gpus();
    ::unsetenv(name.c_str());
    ASSERT_EQ(gpus.size(), 1u) << variable;
    EXPECT_EQ(gpus[0].architecture, architecture) << variable;
  }
  ::unsetenv("BRAID_KFD_TOPOLOGY");
}

// AMD's documentation of hipBLASLt, and what its issues report of RDNA2 to RDNA4.
TEST(Gpus, MultiplyCodesWhereTheirLibraryDoes) {
  for (const auto* const gpu : {"sm_80", "sm_89", "sm_90", "gfx90a", "gfx942", "gfx950"})
    EXPECT_TRUE(multiplies_int8(gpu)) << gpu;
  for (const auto* const gpu : {"gfx906", "gfx1030", "gfx1100", "gfx1101", "gfx1151", "gfx1200"})
    EXPECT_FALSE(multiplies_int8(gpu)) << gpu;
}

// NVIDIA's documentation: tensor cores from Ada on.
TEST(Gpus, MultiplyFloat8FromAdaOn) {
  for (const auto* const gpu : {"sm_89", "sm_90", "sm_100", "sm_120"})
    EXPECT_TRUE(multiplies_float8(gpu)) << gpu;
  for (const auto* const gpu : {"sm_75", "sm_80", "sm_86", "gfx1100", "gfx942", "unknown", "sm_"})
    EXPECT_FALSE(multiplies_float8(gpu)) << gpu;
}

}  // namespace braid::gpus_test
