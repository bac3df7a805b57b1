// Small files that modify a model: LoRA and its kin.
#pragma once

#include <filesystem>

#include "braid/error.h"

namespace braid {

struct Adapter {
  std::filesystem::path file;  // .safetensors, in any of the usual spellings; see adapter_in()
  double scale = 1;            // multiplies what the adapter adds; may be negative
  bool operator==(const Adapter&) const = default;
};

// The file that `name` stands for: the file itself, or a folder's: as diffusers or peft name it, or
// the only one. Names of neither are looked up in Hugging Face's cache ("org/name",
// "org/name/file.safetensors", each with "@revision"). Throws InputError if there is none.
BRAID_API std::filesystem::path adapter_in(const std::filesystem::path& name);

// Throws InputError naming the file and the fact unless adapter_in() has an adapter that Braid
// reads. Whether a model has a use for it, the model's calls say.
BRAID_API void check_adapter(const std::filesystem::path& name);

// kFused: merged into the weights at load. kUnmerged: low-rank products computed beside the
// weights; requests may then bring their own adapters. kAuto: fused, but beside weights stored in 8
// bits.
// kBeside is the name that kUnmerged had before 0.3; it goes with 0.4.
enum class AdapterMode { kAuto, kFused, kUnmerged, kBeside = kUnmerged };

}  // namespace braid
