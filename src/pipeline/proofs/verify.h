// The proof that a layout is right: one evaluation on one rank and one under the layout, from the
// same inputs, compared after every block.
#pragma once

#include "braid/braid.h"
#include "pipeline/proofs/faults.h"

namespace braid {

struct VerifyOptions {
  PipelineOptions pipeline;                            // with the layout to prove
  int width = 0, height = 0, max_sequence_length = 0;  // 0: the model's defaults
  PicturesIn pictures = {};                            // of which the sizes count
  std::uint64_t seed = 0;
  std::optional<double> tolerance = {};  // unset: 1e-4 in float32, 0.05 in shorter types
  std::optional<Fault> fault = {};
  // A model that is known by name: random weights of its shapes instead of files.
  std::string synthetic = {};
  std::vector<int> blocks = {};  // of these, a number a kind; 0: all
  // What a device holds: where the transformer is larger, one rank pages it. 0: what is free on a
  // GPU, no limit on a CPU.
  std::int64_t device_bytes = 0;
};

struct VerifiedBlock {
  std::string where;  // as the model names its parts: "double_blocks.0 image", ..., "velocity"
  double difference;  // largest over the ranks, relative to the largest value of one rank's
  int rank;           // that shows it
};

struct Verdict {
  std::vector<VerifiedBlock> blocks;  // in the order of computation
  double tolerance;
  int num_ranks;
  bool one_rank_was_paged = false;

  const VerifiedBlock* first_divergent() const;  // nullptr: the layout is right
};

// Loads the transformer twice: whole on one rank, block by block where it does not fit the device,
// and as the layout shares it. Throws InputError as
// the Pipeline does.
Verdict verify(const VerifyOptions& options);

}  // namespace braid
