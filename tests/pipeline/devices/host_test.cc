// Which GPU a rank computes on, by launcher and by what that lets it see.
#include "pipeline/devices/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "message_of.h"

namespace braid::host_test {

using testing::HasSubstr;

struct Case {
  const char* name;
  std::map<std::string, std::string> environment;
  std::size_t num_visible;
  std::string device;
};

std::optional<Launch> launch_of(const std::map<std::string, std::string>& environment) {
  return read_launch([&](const char* name) -> const char* {
    const auto it = environment.find(name);
    return it == environment.end() ? nullptr : it->second.c_str();
  });
}

std::map<std::string, std::string> torchrun(const char* rank, const char* local_rank) {
  return {{"RANK", rank},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", local_rank},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", "1"}};
}
std::map<std::string, std::string> srun(const char* rank, const char* local_rank) {
  return {{"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NUM_TASKS", "8"},
          {"SLURM_PROCID", rank},
          {"SLURM_LOCALID", local_rank},
          {"SLURM_STEP_NODELIST", "node[1-2]"}};
}
std::map<std::string, std::string> open_mpi(const char* rank, const char* local_rank) {
  return {{"OMPI_COMM_WORLD_RANK", rank},
          {"OMPI_COMM_WORLD_SIZE", "8"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", local_rank}};
}
std::map<std::string, std::string> mpich(const char* rank, const char* local_rank) {
  return {{"PMI_RANK", rank}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", local_rank}};
}

TEST(DeviceOfRank, IsTheOneWithItsNumberOrTheOnlyOneItSees) {
  const Case cases[] = {
      {"torchrun", torchrun("5", "1"), 4, "cuda:1"},
      {"torchrun, a wrapper around each rank", torchrun("5", "1"), 1, "cuda:0"},
      {"srun --gres=gpu:4", srun("7", "3"), 4, "cuda:3"},
      {"srun --gpus-per-task=1", srun("7", "3"), 1, "cuda:0"},
      {"mpirun", open_mpi("2", "2"), 4, "cuda:2"},
      {"mpirun, a wrapper around each rank", open_mpi("2", "2"), 1, "cuda:0"},
      {"MPICH", mpich("6", "2"), 4, "cuda:2"},
      {"MPICH, a wrapper around each rank", mpich("6", "2"), 1, "cuda:0"},
      {"the last one", torchrun("3", "3"), 4, "cuda:3"},
      {"no GPU, which is found later", torchrun("3", "3"), 0, "cuda:3"},
      {"a process on its own", {}, 4, "cuda"},
  };
  for (const auto& [name, environment, num_visible, device] : cases)
    EXPECT_EQ(device_of_rank("cuda", launch_of(environment), num_visible), device) << name;
}

TEST(DeviceOfRank, IsWhatTheLineSays) {
  for (const auto* const device : {"cpu", "cuda:0", "cuda:2"})
    EXPECT_EQ(device_of_rank(device, launch_of(srun("7", "3")), 4), device);
}

TEST(DeviceOfRank, IsMissingOnlyBehindTheLastVisibleOne) {
  const auto refusal =
      message_of([&] { (void)device_of_rank("cuda", launch_of(torchrun("6", "2")), 2); });
  EXPECT_THAT(refusal, HasSubstr("rank 6 is number 3 of the ranks on its host and sees 2 GPUs"));
  EXPECT_THAT(refusal, HasSubstr("start at most 2 ranks on a host"));
}

}  // namespace braid::host_test
