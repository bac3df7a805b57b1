// Which processes are ranks, from the environments set by launchers.
#include "comm/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "message_of.h"

namespace braid::launch_test {

using testing::HasSubstr;

std::optional<Launch> launch_in(const std::map<std::string, std::string>& variables) {
  return read_launch([&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

std::string refusal_of(const std::map<std::string, std::string>& variables) {
  return message_of([&] { launch_in(variables); });
}

const std::map<std::string, std::string> kTorchrun = {
    {"RANK", "5"},         {"LOCAL_RANK", "1"},      {"WORLD_SIZE", "8"},
    {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29600"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

TEST(Launches, OfNobodyAreNone) {
  EXPECT_FALSE(launch_in({}));
  EXPECT_FALSE(launch_in({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  // a Slurm batch script is not a step
  EXPECT_FALSE(launch_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
}

TEST(Launches, OfTorchrunMeetAtItsAgent) {
  const auto launch = launch_in(kTorchrun);
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "torchrun");
  EXPECT_EQ(launch->rank, 5);
  EXPECT_EQ(launch->size, 8);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->host, "n1");
  EXPECT_EQ(launch->port, 29600);
  EXPECT_TRUE(launch->has_server);
  EXPECT_FALSE(launch->by_mpi);
}

TEST(Launches, CanBeDeclined) {
  auto variables = kTorchrun;
  variables["BRAID_LAUNCHER"] = "none";
  EXPECT_FALSE(launch_in(variables));
  variables["BRAID_LAUNCHER"] = "mpi";
  EXPECT_THAT(refusal_of(variables), HasSubstr("BRAID_LAUNCHER should be none"));
}

TEST(Launches, OfMpirunGoByMpi) {
  for (const auto& launch :
       {launch_in({{"OMPI_COMM_WORLD_RANK", "1"},
                   {"OMPI_COMM_WORLD_SIZE", "3"},
                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}),
        launch_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}})}) {
    ASSERT_TRUE(launch);
    EXPECT_TRUE(launch->by_mpi);
    EXPECT_EQ(launch->rank, 1);
    EXPECT_EQ(launch->size, 3);
    EXPECT_EQ(launch->local_rank, 1);
  }
}

TEST(Launches, OfSrunMeetAtTheFirstHost) {
  const auto launch = launch_in({{"SLURM_STEP_ID", "0"},
                                 {"SLURM_JOB_ID", "12345"},
                                 {"SLURM_PROCID", "2"},
                                 {"SLURM_STEP_NUM_TASKS", "4"},
                                 {"SLURM_LOCALID", "0"},
                                 {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                                 {"PMI_RANK", "2"},
                                 {"PMI_SIZE", "4"}});
  ASSERT_TRUE(launch);
  EXPECT_EQ(launch->launcher, "srun");
  EXPECT_EQ(launch->host, "gpu07");
  EXPECT_EQ(launch->port, 22345);
  EXPECT_FALSE(launch->has_server);
}

// Hydra starts its proxies by srun, one on each host, and ranks inherit a proxy's variables.
TEST(Launches, OfMpirunInASlurmJobGoByMpi) {
  for (const auto& mpi : std::vector<std::map<std::string, std::string>>{
           {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}},
           {{"OMPI_COMM_WORLD_RANK", "1"},
            {"OMPI_COMM_WORLD_SIZE", "2"},
            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}}}) {
    std::map<std::string, std::string> variables = {{"SLURM_STEP_ID", "0"},
                                                    {"SLURM_STEP_NUM_TASKS", "1"},
                                                    {"SLURM_PROCID", "0"},
                                                    {"SLURM_LOCALID", "0"},
                                                    {"SLURM_STEP_NODELIST", "n1"}};
    variables.insert(mpi.begin(), mpi.end());
    const auto launch = launch_in(variables);
    ASSERT_TRUE(launch);
    EXPECT_TRUE(launch->by_mpi);
    EXPECT_EQ(launch->rank, 1);
    EXPECT_EQ(launch->size, 2);
    EXPECT_EQ(launch->local_rank, 1);
  }
}

TEST(Launches, ThatContradictThemselvesAreRefused) {
  auto variables = kTorchrun;
  variables["RANK"] = "8";
  EXPECT_EQ(
      refusal_of(variables),
      "the variable RANK should be a number between 0 and 7, it is '8'; if no launcher started "
      "this process, RANK is left over from another: BRAID_LAUNCHER=none ignores it");
  variables["RANK"] = "two";
  EXPECT_THAT(refusal_of(variables), HasSubstr("it is 'two'"));
  variables = kTorchrun;
  variables.erase("MASTER_PORT");
  EXPECT_THAT(refusal_of(variables),
              testing::StartsWith("torchrun should set the variable MASTER_PORT, it is not set; "));
}

TEST(Launches, TakeAddressesAsInUrls) {
  auto variables = kTorchrun;
  variables["MASTER_ADDR"] = "[::1]";
  EXPECT_EQ(launch_in(variables)->host, "::1");
  variables["MASTER_ADDR"] = "[]";
  EXPECT_EQ(launch_in(variables)->host, "[]");
}

TEST(SlurmHosts, FirstOfAList) {
  EXPECT_EQ(first_host("login"), "login");
  EXPECT_EQ(first_host("a1,b2"), "a1");
  EXPECT_EQ(first_host("node[03-05,7],x"), "node03");
  EXPECT_EQ(first_host("node[7,9]-ib"), "node7-ib");
  EXPECT_EQ(first_host("r[1-2]n[5-6]"), "r1n5");
  EXPECT_EQ(first_host("r[1-2]n[5,6]"), "r1n5");
  EXPECT_EQ(first_host("r[1,3-4]n[05-16],login"), "r1n05");
  EXPECT_EQ(first_host("a,node[3-4]"), "a");
  EXPECT_EQ(first_host("rack[2]-n[07-09]-ib,x[1-2]"), "rack2-n07-ib");
  EXPECT_EQ(first_host("gpu[007]"), "gpu007");
  for (const auto* const list : {"node[3", "node[]", "node[,3]", "node3]", "r[1-2]n[5,6", ",b"})
    EXPECT_THROW(first_host(list), InputError) << list;
}

}  // namespace braid::launch_test
