// A checkpoint written in shards, each as soon as it is full.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>

#include "weights/survey.h"

namespace braid {

// A tensor to write. Its numbers are read in `dtype`, which holds them all, and those of each
// tensor that it is stored as are written in one of `dtypes`.
struct WrittenTensor : SurveyedTensor {
  std::vector<at::ScalarType> dtypes = {};  // none: all are written in `dtype`
};

// `rest`: tensors from another source, with names of their own, for further shards of the same
// checkpoint.
struct ShardJob {
  std::vector<WrittenTensor> asked;
  Weights source;
  Names names;                   // of the tensors in the shards
  ShardingTable shardings = {};  // for layers split on the way out
  std::filesystem::path folder;
  std::string stem;         // "diffusion_pytorch_model"
  std::string recipe = {};  // how the shards are built, where this may differ between runs
  std::int64_t shard_bytes = std::int64_t(1)
                             << 30;  // approximate; no shard exceeds it by more than one tensor
  std::function<void(std::int64_t bytes)> on_bytes = {};
  bool is_adapted = false;                        // adapters are merged
  std::map<std::string, std::string> notes = {};  // metadata of the shards
  // Names a written tensor whose numbers are not all finite.
  std::function<void(const std::string& text)> warn = {};
  std::shared_ptr<const ShardJob> rest = {};
};

// Writes FOLDER/STEM.safetensors, or several shards and their index. Each is read back and
// compared, and gets a note beside it: its sources, the recipe, its digest. A shard of an earlier
// run is kept if all three still match; its other shards and their index are removed. Throws Error.
void write_shards(const ShardJob& job);

// Removes the notes of a finished conversion.
void remove_notes(const std::filesystem::path& folder);

}  // namespace braid
