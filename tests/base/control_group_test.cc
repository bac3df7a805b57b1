// Limits of containers, read from made copies of the kernel's files.
#include "base/control_group.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <map>

#include "temporary_folder.h"

namespace braid::control_group_test {

namespace fs = std::filesystem;

constexpr std::uint64_t kGiB = 1u << 30;

ControlGroup read(const std::map<std::string, std::string>& files) {
  const TemporaryFolder root;
  for (const auto& [name, contents] : files) {
    fs::create_directories((root.path() / name).parent_path());
    std::ofstream(root.path() / name) << contents;
  }
  return read_control_group(root.path());
}

TEST(ControlGroups, OfVersion2AreReadWithThoseAbove) {
  const auto group =
      read({{"proc/self/cgroup", "0::/system.slice/braid.service\n"},
            {"sys/fs/cgroup/system.slice/braid.service/memory.max", "8589934592\n"},
            {"sys/fs/cgroup/system.slice/braid.service/memory.current", "3221225472\n"},
            {"sys/fs/cgroup/system.slice/braid.service/memory.stat",
             "anon 5\nfile 7\ninactive_file 1073741824\n"},
            {"sys/fs/cgroup/system.slice/braid.service/cpu.max", "max 100000\n"},
            {"sys/fs/cgroup/system.slice/memory.max", "max\n"},
            {"sys/fs/cgroup/system.slice/cpu.max", "250000 100000\n"}});
  EXPECT_EQ(group.memory_bytes, 8 * kGiB);
  EXPECT_EQ(group.free_bytes, 6 * kGiB);  // a third of what is used can be dropped
  EXPECT_EQ(group.cpus, 2.5);
}

// The group above is the tighter one, and fuller than its limit.
TEST(ControlGroups, AreAsTightAsTheTightestAbove) {
  const auto group = read({{"proc/self/cgroup", "0::/a/b\n"},
                           {"sys/fs/cgroup/a/b/memory.max", "8589934592"},
                           {"sys/fs/cgroup/a/b/memory.current", "0"},
                           {"sys/fs/cgroup/a/memory.max", "2147483648"},
                           {"sys/fs/cgroup/a/memory.current", "4294967296"}});
  EXPECT_EQ(group.memory_bytes, 2 * kGiB);
  EXPECT_EQ(group.free_bytes, 0u);
  EXPECT_FALSE(group.cpus);
}

// Docker without a namespace for groups: the name is the host's, the files are at the top.
TEST(ControlGroups, OfContainersAreSeenAtTheTop) {
  const auto group =
      read({{"proc/self/cgroup",
             "12:memory:/docker/4f2e\n4:cpu,cpuacct:/docker/4f2e\n1:name=systemd:/docker/4f2e\n"},
            {"sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n"},
            {"sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n"},
            {"sys/fs/cgroup/memory/memory.stat", "inactive_file 9\ntotal_inactive_file 0\n"},
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"},
            {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}});
  EXPECT_EQ(group.memory_bytes, 4 * kGiB);
  EXPECT_EQ(group.free_bytes, 3 * kGiB);
  EXPECT_EQ(group.cpus, 0.5);
}

TEST(ControlGroups, WithoutLimitsOrFilesLimitNothing) {
  const auto unlimited =
      read({{"proc/self/cgroup", "3:cpuset:/\n2:memory:/\n1:cpu:/\nno colons\n0::/\n"},
            {"sys/fs/cgroup/memory/memory.limit_in_bytes", "-1\n"},
            {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
            {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
            {"sys/fs/cgroup/memory.max", "many\n"},
            {"sys/fs/cgroup/cpu.max", "100000\n"}});
  for (const auto& group : {unlimited, read({})}) {
    EXPECT_FALSE(group.memory_bytes);
    EXPECT_FALSE(group.free_bytes);
    EXPECT_FALSE(group.cpus);
  }
}

// The group itself is the tightest, in memory and in what is left of it.
TEST(ControlGroups, AreNotLoosenedByThoseAbove) {
  const auto group = read({{"proc/self/cgroup", "0::/a/b\n"},
                           {"sys/fs/cgroup/a/b/memory.max", "2147483648"},
                           {"sys/fs/cgroup/a/b/memory.current", "1073741824"},
                           {"sys/fs/cgroup/a/b/cpu.max", "150000 100000"},
                           {"sys/fs/cgroup/a/memory.max", "8589934592"},
                           {"sys/fs/cgroup/a/memory.current", "1073741824"},
                           {"sys/fs/cgroup/a/cpu.max", "400000 100000"}});
  EXPECT_EQ(group.memory_bytes, 2 * kGiB);
  EXPECT_EQ(group.free_bytes, 1 * kGiB);
  EXPECT_EQ(group.cpus, 1.5);
}

// The kernel counts in several files, which it does not write at one time.
TEST(ControlGroups, MayHaveMoreInTheCacheThanInUse) {
  const auto group = read({{"proc/self/cgroup", "0::/\n"},
                           {"sys/fs/cgroup/memory.max", "4294967296"},
                           {"sys/fs/cgroup/memory.current", "1073741824"},
                           {"sys/fs/cgroup/memory.stat", "inactive_file 2147483648\n"}});
  EXPECT_EQ(group.free_bytes, 4 * kGiB);
}

TEST(ControlGroups, WhoseFilesEndEarlyAreReadAsFarAsTheyGo) {
  const auto group = read({{"proc/self/cgroup", "0::/\n"},
                           {"sys/fs/cgroup/memory.max", "4294967296"},
                           {"sys/fs/cgroup/memory.current", ""},
                           {"sys/fs/cgroup/memory.stat", "anon 5\ninactive_file"},
                           {"sys/fs/cgroup/cpu.max", ""}});
  EXPECT_EQ(group.memory_bytes, 4 * kGiB);
  EXPECT_EQ(group.free_bytes, 4 * kGiB);
  EXPECT_FALSE(group.cpus);
}

// systemd escapes little: a template's instance or a tool may put colons into a name.
TEST(ControlGroups, MayHaveColonsInTheirNames) {
  const auto group = read({{"proc/self/cgroup", "0::/job:7/step:0\n"},
                           {"sys/fs/cgroup/job:7/step:0/memory.max", "1073741824"}});
  EXPECT_EQ(group.memory_bytes, kGiB);
}

// cpuset and cpuacct are other controllers than cpu, whose hierarchy this process is not in.
TEST(ControlGroups, OfOtherControllersDoNotLimit) {
  const auto group = read({{"proc/self/cgroup", "5:cpuset,cpuacct:/\n6:memory_recursiveprot:/\n"},
                           {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000"},
                           {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"},
                           {"sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824"}});
  EXPECT_FALSE(group.cpus);
  EXPECT_FALSE(group.memory_bytes);
}

// Version 1 for memory, version 2 for the rest, as systemd's hybrid mode leaves it.
TEST(ControlGroups, OfBothVersionsAddUp) {
  const auto group = read({{"proc/self/cgroup", "3:memory:/job\n0::/job\n"},
                           {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648"},
                           {"sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073741824"},
                           {"sys/fs/cgroup/job/cpu.max", "100000 100000"}});
  EXPECT_EQ(group.memory_bytes, 2 * kGiB);
  EXPECT_EQ(group.free_bytes, kGiB);
  EXPECT_EQ(group.cpus, 1);
}

TEST(ControlGroups, AreLimitedByNumbersOnly) {
  for (const auto* const limit :
       {"4096k", "0x1000", "4096.5", "-4096", " ", "99999999999999999999"})
    EXPECT_FALSE(
        read({{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/memory.max", limit}}).memory_bytes)
        << limit;
  for (const auto* const cpus : {"0 100000", "100000 0", "1e5 100000", "max max"})
    EXPECT_FALSE(read({{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", cpus}}).cpus)
        << cpus;
}

TEST(ControlGroups, LimitWhatTheMachineHas) {
  const auto cpus = usable_cpus({});
  cpu_set_t bound;
  ASSERT_EQ(::sched_getaffinity(0, sizeof bound, &bound), 0);
  EXPECT_EQ(cpus, CPU_COUNT(&bound));
  EXPECT_EQ(usable_cpus({.cpus = 0.3}), 1);
  EXPECT_EQ(usable_cpus({.cpus = 1e6}), cpus);
  EXPECT_EQ(usable_cpus({.cpus = cpus - 0.5}), cpus);

  const auto memory = usable_memory({});
  EXPECT_GT(memory, kGiB / 4);
  EXPECT_EQ(usable_memory({.memory_bytes = 12345}), 12345u);
  EXPECT_EQ(usable_memory({.memory_bytes = std::uint64_t(1) << 62}), memory);
}

// MemFree is what sysconf(_SC_AVPHYS_PAGES) counts: it leaves out what the kernel caches of files.
TEST(AvailableMemory, CountsCachedFilesAndTheLimitsOfTheGroup) {
  const TemporaryFolder root;
  EXPECT_EQ(available_memory({}, root.path()), 0u) << "nothing tells";
  fs::create_directories(root.path() / "proc");
  std::ofstream(root.path() / "proc/meminfo") << "MemTotal:       8388608 kB\n"
                                                 "MemFree:        1048576 kB\n"
                                                 "MemAvailable:   4194304 kB\n";
  EXPECT_EQ(available_memory({}, root.path()), 4 * kGiB);
  EXPECT_EQ(available_memory({.free_bytes = kGiB}, root.path()), kGiB);
  EXPECT_EQ(available_memory({.free_bytes = 6 * kGiB}, root.path()), 4 * kGiB);
}

}  // namespace braid::control_group_test
