// Whether this process is one rank of a run started by mpirun, torchrun or srun, and how it finds
// the others.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace braid {

struct Launch {
  std::string launcher = {};  // "mpirun", "torchrun", "srun": for messages
  int rank = 0, size = 1;
  int local_rank = 0;              // selects a device of this host
  std::string size_variable = {};  // that told of the launch: "WORLD_SIZE"
  bool by_mpi = false;    // processes find each other through MPI, otherwise at `host`:`port`
  std::string host = {};  // where the first rank, or torchrun's agent, listens
  std::string host_variable = {};  // that named it: "MASTER_ADDR"
  int port = 0;
  bool has_server = false;  // another process already listens there
};

// nullopt for a process started on its own, or as the only rank. Reads, in this order:
//   BRAID_LAUNCHER=none                                    each process is on its own
//   torchrun  RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE
//   Open MPI  OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
//   MPICH     PMI_RANK, PMI_SIZE, MPI_LOCALRANKID
//   srun      SLURM_STEP_ID, SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID,
//             SLURM_STEP_NODELIST; MASTER_ADDR and MASTER_PORT if set
//   others with MPICH's PMI  PMI_RANK, PMI_SIZE
// Throws InputError naming the variable that is missing or not a number.
using Environment = std::function<const char*(const char* name)>;
std::optional<Launch> read_launch(const Environment& environment);
std::optional<Launch> read_launch();

// The end of a sentence for people who started no launcher: where the variable comes from, and how
// to ignore it.
std::string launch_advice(const std::string& variable);

// "[::1]" -> "::1": addresses are often written as in a URL.
std::string without_brackets(const std::string& host);

// "node[03-05,7]-ib,login" -> "node03-ib". Throws InputError if this is not such a list.
std::string first_host(const std::string& slurm_node_list);

}  // namespace braid
