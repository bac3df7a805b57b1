// The files of weights in a folder, under the names that diffusers, transformers and people give
// them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace braid {

// ".safetensors", ".sft" or ".gguf", in any case; not names that begin with a dot: macOS leaves
// "._NAME" beside each file on foreign disks, which holds none of its bytes.
bool is_weights_name(const std::filesystem::path& path);
bool is_safetensors_name(const std::filesystem::path& path);

struct FolderFiles {
  std::filesystem::path index = {};  // it names the files; empty: `files` has them
  std::vector<std::filesystem::path> files = {};
  // Other variants that would have done as well: an index, or the first file of each.
  std::vector<std::filesystem::path> left_alone = {};

  bool is_empty() const { return index.empty() && files.empty(); }
};

// Files of a part whose usual names begin with `stem`: STEM.safetensors, its shards with an index,
// STEM.gguf, the same of a variant ("model.fp16.safetensors"), all shards without an index, or the
// only file of weights that is there. Of several variants bf16 comes first, then fp16, fp32, fp8,
// then the others by name ("ema" before "non_ema"). Empty if there is none. Throws InputError if
// shards are missing.
FolderFiles find_weights(const std::filesystem::path& folder, const std::string& stem);

// The same of a folder elsewhere that holds files of these names: names are returned. `where` is
// what errors call it.
FolderFiles find_weights(const std::vector<std::string>& names, const std::string& stem,
                         const std::string& where);

// What lies in a folder without weights that Braid reads, as a clause: "it has model.bin, a pickle
// ...".
std::string what_lies_there(const std::filesystem::path& folder);

// Files of weights directly in the folder, sorted by name.
std::vector<std::filesystem::path> weights_lying_in(const std::filesystem::path& folder);

}  // namespace braid
