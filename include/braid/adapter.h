// Small files that change a model: LoRA and its kin.
#pragma once

#include <filesystem>

namespace braid {

struct Adapter {
  std::filesystem::path file;  // .safetensors, in any of the usual spellings
  double scale = 1;            // of what it adds; may be negative
};

// kFused: into the weights, when these are loaded. kBeside: as products of low rank beside those of
// the weights, and requests may bring adapters of their own. kAuto: fused, beside weights that are
// stored in 8 bits.
enum class AdapterMode { kAuto, kFused, kBeside };

}  // namespace braid
