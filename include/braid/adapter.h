// Small files that modify a model: LoRA and its kin.
#pragma once

#include <filesystem>

namespace braid {

struct Adapter {
  std::filesystem::path file;  // .safetensors, in any of the usual spellings
  double scale = 1;            // multiplies what the adapter adds; may be negative
};

// kFused: merged into the weights at load. kUnmerged: low-rank products computed beside the
// weights; requests may then bring their own adapters. kAuto: fused, but beside weights stored in 8
// bits.
// kBeside is the name that kUnmerged had before 0.3; it goes with 0.4.
enum class AdapterMode { kAuto, kFused, kUnmerged, kBeside = kUnmerged };

}  // namespace braid
