// What lies in a device's memory, by kind.
#pragma once

#include "pipeline/planner/grid.h"
#include "pipeline/planner/stages.h"

namespace braid {

// Bytes of one rank. Weights are exact; the rest is counted from the tensors that live at the
// widest place of a block, and of the decoder.
struct RankBytes {
  std::int64_t transformer = 0, text_encoders = 0, vae = 0;  // weights
  std::int64_t activations = 0;                              // of a block
  std::int64_t keys_values = 0;  // that attention sees at once, and what arrives meanwhile
  std::int64_t staging = 0;      // what collectives send and receive
  std::int64_t decoding = 0;     // the autoencoder's activations, after the last step

  std::int64_t weights() const { return transformer + text_encoders + vae; }
  std::int64_t peak() const;
};

// `stage` is the run of blocks that the rank holds.
RankBytes predict_bytes(const PlanJob& job, const Grid& grid, int rank, const Stage& stage);

// What is there before the transformer is loaded: text encoders on the first rank or on the tensor
// parallel ranks next to it, the autoencoder on all ranks or the first.
RankBytes bytes_of_others(const PlanJob& job, const Grid& grid, int rank);

}  // namespace braid
