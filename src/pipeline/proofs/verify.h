// The proof that a layout is right: one evaluation on a single rank and one under the layout, from
// the same inputs, compared after every block.
#pragma once

#include "pipeline/deployment/deployment.h"
#include "pipeline/proofs/faults.h"
#include "pipeline/proofs/probe.h"

namespace braid {

struct VerifyOptions {
  ProbeOptions probe = {};
  std::uint64_t seed = 0;
  std::optional<double> tolerance = {};  // unset: 1e-4 in float32, 0.05 in shorter types
  std::optional<Fault> fault = {};
  // Device memory: a transformer that exceeds it is paged on the single rank. 0: a GPU's free
  // memory, no limit on a CPU.
  std::int64_t device_bytes = 0;
};

struct VerifiedBlock {
  std::string where;  // in the model's names: "double_blocks.0 image", ..., "velocity"
  double difference;  // largest over ranks, relative to the largest value on one rank
  int rank;           // the rank that shows it
};

struct Verdict {
  std::vector<VerifiedBlock> blocks;  // in order of computation
  double tolerance;
  int num_ranks;
  bool one_rank_was_paged = false;

  const VerifiedBlock* first_divergent() const;  // nullptr: the layout is right
};

// Loads the denoisers twice: whole on one rank, block by block if they exceed the device; and
// sharded by the deployment's layout. Throws InputError as the Pipeline does.
Verdict verify(Deployment deployment, const VerifyOptions& options = {});

}  // namespace braid
