// Ranks as processes, each started as torchrun starts it.
#pragma once

#include <memory>

#include "workplace.h"

namespace braid::processes_test {

using Arguments = std::vector<std::string>;

inline const std::string kDemoModel = BRAID_SOURCE_DIR "/models/demo";

class Processes : public Workplace {
 protected:
  using Running = std::vector<std::unique_ptr<Subprocess>>;

  // Starts a process for a rank, told of the others by variables, as torchrun does.
  std::unique_ptr<Subprocess> start_rank(int rank, int size, int port, const Arguments& arguments,
                                         const Arguments& more_environment = {}) const {
    Arguments environment = {
        "RANK=" + std::to_string(rank),        "LOCAL_RANK=" + std::to_string(rank),
        "WORLD_SIZE=" + std::to_string(size),  "MASTER_ADDR=127.0.0.1",
        "MASTER_PORT=" + std::to_string(port), "OMP_NUM_THREADS=1"};
    environment.insert(environment.end(), more_environment.begin(), more_environment.end());
    return std::make_unique<Subprocess>(Invocation{
        .arguments = arguments, .environment = std::move(environment), .folder = folder_});
  }
  Running start(int size, const Arguments& arguments) const {
    const auto port = free_port();
    Running ranks;
    for (int rank = 0; rank < size; ++rank)
      ranks.push_back(start_rank(rank, size, port, arguments));
    return ranks;
  }
  std::vector<Finished> finish(const Running& ranks) const {
    std::vector<Finished> all;
    for (const auto& rank : ranks) all.push_back(rank->finish());
    return all;
  }
  Finished mpirun(int size, const Arguments& arguments) const {
    Subprocess running(
        {.arguments = arguments,
         .launcher = {BRAID_MPIEXEC, "-n", std::to_string(size)},
         // more ranks than cores; also as root
         .environment = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                         "OMPI_MCA_rmaps_base_oversubscribe=1",
                         "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
                         "OMPI_MCA_mpi_yield_when_idle=1", "OMP_NUM_THREADS=1"},
         .folder = folder_});
    return running.finish();
  }
  static Arguments picture(const std::string& name, const Arguments& layout = {}) {
    Arguments all = {"generate", "a blue square", "-m",      kDemoModel,
                     "--size",   "112x80",        "--steps", "3",
                     "--dtype",  "float32",       "-o",      name};
    all.insert(all.end(), layout.begin(), layout.end());
    return all;
  }
  static Arguments endless(const Arguments& layout) {
    auto all = picture("never.png", layout);
    all.insert(all.end(), {"--steps", "10000"});
    return all;
  }
  std::string contents(const std::string& name) const { return read_file(folder_ / name, 1 << 24); }
};

}  // namespace braid::processes_test
