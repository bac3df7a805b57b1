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
  // It holds for everything. Unset, it is 1e-4 in float32; in shorter types 0.05 after a block, and
  // for attention what a number may change by rounding: 1/256 in bfloat16, 1/2048 in float16.
  std::optional<double> tolerance = {};
  std::optional<Fault> fault = {};
  // Device memory: a transformer that exceeds it is paged on the single rank. 0: a GPU's free
  // memory, no limit on a CPU.
  std::int64_t device_bytes = 0;
};

struct VerifiedBlock {
  std::string where;  // in the model's names: "double_blocks.0 image", ..., "velocity"
  // Largest over ranks, relative to the largest value on one rank; of "double_blocks.0 attention"
  // a norm, relative to that of attention over all keys at once.
  double difference;
  int rank;  // the rank that shows it
  double tolerance;

  bool is_right() const { return difference <= tolerance; }
};

struct Tolerances {
  double block, attention;
};

struct Verdict {
  // In order of computation. Attention is among them where ranks share tokens, unless it is also to
  // keys that an earlier evaluation kept.
  std::vector<VerifiedBlock> blocks;
  Tolerances tolerances;
  int num_ranks;
  bool one_rank_was_paged = false;
  bool has_fault = false;  // that was injected

  const VerifiedBlock* first_divergent() const;  // nullptr: the layout is right
};

// Loads the denoisers twice: whole on one rank, block by block if they exceed the device; and
// sharded by the deployment's layout. Throws InputError as the Pipeline does.
Verdict verify(Deployment deployment, const VerifyOptions& options = {});

}  // namespace braid
