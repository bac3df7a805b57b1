// What lies in a device's memory, by kind.
#pragma once

#include "pipeline/planner/grid.h"
#include "pipeline/planner/job.h"
#include "pipeline/planner/stages.h"

namespace braid {

// Bytes of one rank. Weights are exact; the rest is counted from the numbers that live at the
// widest place of a block, of the text encoders and of the decoder.
struct RankBytes {
  std::int64_t transformer = 0, text_encoders = 0, vae = 0;  // weights on the device, with slots
  std::int64_t shared_slot = 0;  // of the parts that take turns on the device
  std::int64_t encoding = 0;     // activations of text encoders, or pictures and their encoder
  std::int64_t activations = 0;  // of a block
  std::int64_t keys_values = 0;  // that attention sees at once, and what arrives meanwhile
  std::int64_t modulations = 0;  // of all steps of a batch, from before the first
  std::int64_t kept = 0;         // keys and values of references that are seen once
  std::int64_t staging = 0;      // what collectives send and receive
  std::int64_t widened = 0;      // 8-bit weights, while they multiply
  std::int64_t decoding = 0;     // the autoencoder's activations, after the last step

  std::int64_t slots = 0;                             // of the weights above
  std::int64_t pages = 0;                             // of all offloaded weights, wherever they lie
  std::int64_t resident_pages = 0;                    // of these, once loaded, on the device alone
  std::int64_t largest_page = 0, largest_tensor = 0;  // of the offloaded, of all weights
  std::int64_t locked = 0;  // of the host's memory, which a GPU copies from by itself

  std::int64_t weights() const { return transformer + text_encoders + vae + shared_slot; }
  std::int64_t peak() const;  // on the device
};

// `stage` is the run of blocks that the rank holds. The job is surveyed, here and below.
RankBytes predict_bytes(const PlanJob& job, const Degrees& grid, int rank, const Stage& stage);

// Of the transformer alone, as `bench` and `verify` have it.
RankBytes predict_transformer_bytes(const PlanJob& job, const Degrees& grid, int rank,
                                    const Stage& stage);

// What is there before the transformer is loaded: text encoders on the first rank or on the tensor
// parallel ranks next to it, the autoencoder on all ranks or the first.
RankBytes bytes_of_others(const PlanJob& job, const Degrees& grid, int rank);

// What a rank adds to its process's resident memory at most: on a CPU all that it holds, and up to
// 80 MB that its thread keeps; beside a GPU the pages that are not in files, and what they go
// through on their way to it, without what the driver has there.
std::int64_t host_peak(const PlanJob& job, const RankBytes& bytes);

// What a process with LibTorch has resident beside its ranks: code, for the most part.
constexpr std::int64_t kProcessBytes = 165'000'000;

}  // namespace braid
