// What occupies a device's memory, by kind.
#pragma once

#include "pipeline/planner/grid.h"
#include "pipeline/planner/job.h"
#include "pipeline/planner/stages.h"

namespace braid {

// Bytes of one rank. Weights are exact. The rest is counted from the values live at the widest
// place of a block, of the text encoders and of the decoder.
struct RankBytes {
  std::int64_t transformer = 0, text_encoders = 0, vae = 0;  // weights on the device, with slots
  std::int64_t shared_slot = 0;  // for the parts that take turns on the device
  std::int64_t encoding = 0;     // activations of text encoders, or pictures and their encoder
  std::int64_t activations = 0;  // within a block
  std::int64_t keys_values = 0;  // seen at once by attention, and arriving meanwhile
  std::int64_t modulations = 0;  // for all steps of a batch, computed before the first
  std::int64_t ropes = 0;        // rotary tables, made before the first step
  std::int64_t kept = 0;         // keys and values of cached references; refined text
  std::int64_t staging = 0;      // what collectives send and receive
  std::int64_t widened = 0;      // weights in codes, while they multiply
  std::int64_t decoding = 0;     // autoencoder activations, after the last step
  std::int64_t recorded = 0;     // held by a GPU's recorded steps while it does something else
  std::int64_t other_steps = 0;  // held by those of other denoisers while one evaluates
  std::int64_t link = 0;         // buffers of the library that links GPUs

  std::int64_t slots = 0;                             // of the weights above
  std::int64_t pages = 0;                             // of all offloaded weights, wherever they lie
  std::int64_t resident_pages = 0;                    // of these, after loading only on the device
  std::int64_t largest_page = 0, largest_tensor = 0;  // of offloaded weights; of all weights
  std::int64_t locked = 0;  // host memory from which a GPU copies directly

  std::int64_t weights() const { return transformer + text_encoders + vae + shared_slot; }
  std::int64_t peak() const;  // on the device
};

// The ranks that share the text encoders.
Shares text_ranks(const PlanJob& job, const Degrees& grid);

// `stage` is the rank's run of blocks. The job is surveyed, here and below.
RankBytes predict_bytes(const PlanJob& job, const Degrees& grid, int rank, const Stage& stage);

// The transformer alone, as in `bench` and `verify`.
RankBytes predict_transformer_bytes(const PlanJob& job, const Degrees& grid, int rank,
                                    const Stage& stage);

// What is loaded before the transformer: text encoders on the first rank or on its neighbouring
// tensor parallel ranks, the autoencoder on all ranks or the first.
RankBytes bytes_of_others(const PlanJob& job, const Degrees& grid, int rank);

// The most a rank adds to its process's resident memory. On a CPU: all it holds, and up to 80 MB
// that its thread keeps. With a GPU: pages not in files and their staging, or while loading the
// numbers' way there, without the driver's own memory.
std::int64_t host_peak(const PlanJob& job, const RankBytes& bytes);

// What a rank needs of its device. On a CPU, offloaded weights are in the same memory.
std::int64_t needed_bytes(const PlanJob& job, const RankBytes& bytes);

// Resident memory of a process with LibTorch besides its ranks: mostly code.
constexpr std::int64_t kProcessBytes = 165'000'000;
// That, and the pictures that a request brings.
inline std::int64_t process_bytes(const PlanJob& job) {
  return kProcessBytes + job.pictures.held_bytes;
}

}  // namespace braid
