#include "comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "comm/mesh.h"

namespace braid {
namespace {

class Variables {
 public:
  // `size_variable` is the one that told of the launcher.
  Variables(const Environment& environment, std::string launcher, std::string size_variable)
      : environment_(environment),
        launcher_(std::move(launcher)),
        size_variable_(std::move(size_variable)) {}

  bool has(const char* name) const { return environment_(name) != nullptr; }

  std::string text(const char* name) const {
    const char* const value = environment_(name);
    require(value && *value, launcher_, " should set the variable ", name, ", it is not set",
            launch_advice(size_variable_));
    return value;
  }
  int number(const char* name, int least, int most) const {
    const auto value = text(name);
    int result = 0;
    const auto* const end = value.data() + value.size();
    const auto [stop, failure] = std::from_chars(value.data(), end, result);
    require(failure == std::errc() && stop == end && result >= least && result <= most,
            "the variable ", name, " should be a number between ", least, " and ", most,
            ", it is '", value, "'", launch_advice(name));
    return result;
  }
  int number_or(const char* name, int otherwise, int least, int most) const {
    return has(name) ? number(name, least, most) : otherwise;
  }
  Launch ranks(const char* rank, const char* local_rank) const {
    Launch launch{.launcher = launcher_,
                  .size = number(size_variable_.c_str(), 1, kMostRanks),
                  .size_variable = size_variable_};
    launch.rank = number(rank, 0, launch.size - 1);
    launch.local_rank = number_or(local_rank, 0, 0, kMostRanks);
    return launch;
  }

 private:
  const Environment& environment_;
  std::string launcher_, size_variable_;
};

constexpr int kMostPort = 65535;

Launch read_torchrun(const Environment& environment) {
  const Variables torchrun(environment, "torchrun", "WORLD_SIZE");
  auto launch = torchrun.ranks("RANK", "LOCAL_RANK");
  launch.host_variable = "MASTER_ADDR";
  launch.host = without_brackets(torchrun.text("MASTER_ADDR"));
  launch.port = torchrun.number("MASTER_PORT", 1, kMostPort);
  const char* const agent = environment("TORCHELASTIC_USE_AGENT_STORE");
  launch.has_server = agent && std::strcmp(agent, "True") == 0;
  return launch;
}

// Slurm provides no port, so it is derived from the job number: jobs on one host differ in it.
Launch read_srun(const Environment& environment) {
  const Variables srun(environment, "srun", "SLURM_STEP_NUM_TASKS");
  auto launch = srun.ranks("SLURM_PROCID", "SLURM_LOCALID");
  launch.host_variable = srun.has("MASTER_ADDR") ? "MASTER_ADDR" : "SLURM_STEP_NODELIST";
  launch.host = srun.has("MASTER_ADDR") ? without_brackets(srun.text("MASTER_ADDR"))
                                        : first_host(srun.text("SLURM_STEP_NODELIST"));
  constexpr int kFirstPort = 20'000, kPorts = 10'000;
  const int job = srun.number_or("SLURM_JOB_ID", 0, 0, INT32_MAX);
  const int step = srun.number_or("SLURM_STEP_ID", 0, 0, INT32_MAX);
  launch.port =
      srun.number_or("MASTER_PORT", kFirstPort + int((job + 97ll * step) % kPorts), 1, kMostPort);
  return launch;
}

Launch read_mpi(const Environment& environment, const char* rank, const char* size,
                const char* local_rank) {
  auto launch = Variables(environment, "mpirun", size).ranks(rank, local_rank);
  launch.by_mpi = true;
  return launch;
}

std::optional<Launch> find(const Environment& environment) {
  const auto has = [&](const char* name) { return environment(name) != nullptr; };
  if (const char* const choice = environment("BRAID_LAUNCHER")) {
    require(std::strcmp(choice, "none") == 0,
            "BRAID_LAUNCHER should be none or not be set, it is '", choice, "'");
    return std::nullopt;
  }
  if (has("RANK") && has("WORLD_SIZE") && has("MASTER_ADDR")) return read_torchrun(environment);
  if (has("OMPI_COMM_WORLD_SIZE"))
    return read_mpi(environment, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                    "OMPI_COMM_WORLD_LOCAL_RANK");
  const auto by_hydra = [&] {
    return read_mpi(environment, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID");
  };
  // In a Slurm job Hydra starts its proxies by srun: their step's variables reach the ranks.
  if (has("PMI_SIZE") && has("MPI_LOCALRANKID")) return by_hydra();
  // Set in every step that srun starts, but not in the batch script around it. Slurm's own PMI sets
  // PMI_RANK and PMI_SIZE, too.
  if (has("SLURM_STEP_ID") && has("SLURM_STEP_NUM_TASKS")) return read_srun(environment);
  if (has("PMI_SIZE")) return by_hydra();
  return std::nullopt;
}

}  // namespace

std::optional<Launch> read_launch(const Environment& environment) {
  auto launch = find(environment);
  return launch && launch->size > 1 ? launch : std::nullopt;
}

std::optional<Launch> read_launch() {
  return read_launch([](const char* name) -> const char* { return std::getenv(name); });
}

std::string launch_advice(const std::string& variable) {
  return text_of("; if no launcher started this process, ", variable,
                 " is left over from another: BRAID_LAUNCHER=none ignores it");
}

std::string without_brackets(const std::string& host) {
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

// Commas separate hosts, and inside brackets the numbers of one.
std::string first_host(const std::string& list) {
  std::string host;
  bool is_list = true;
  for (std::size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      is_list &= list[at] != ']';
      host += list[at];
      continue;
    }
    const auto end = list.find_first_of(",-]", at + 1);
    const auto close = list.find(']', at);
    is_list &= close != std::string::npos && end > at + 1;
    if (!is_list) break;
    host += list.substr(at + 1, end - at - 1);
    at = close;
  }
  require(is_list && !host.empty(), "SLURM_STEP_NODELIST should be a list of hosts, it is '", list,
          "'");
  return host;
}

}  // namespace braid
