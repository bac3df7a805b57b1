// A checkpoint written in shards, each as soon as it is full.
#pragma once

#include <filesystem>
#include <functional>

#include "weights/survey.h"

namespace braid {

struct ShardJob {
  std::vector<AskedTensor> asked;
  Weights source;
  Names names;                   // that the shards get
  ShardingTable shardings = {};  // for what is split on the way out
  std::filesystem::path folder;
  std::string stem;         // "diffusion_pytorch_model"
  std::string recipe = {};  // says how the shards are made, where this may differ between runs
  std::int64_t shard_bytes = std::int64_t(1)
                             << 30;  // about; no shard has more by more than a tensor
  std::function<void(std::int64_t bytes)> on_bytes = {};
};

// FOLDER/STEM.safetensors, or several shards and their index. Each is read again and compared, and
// gets a note beside it that says what it was made of, how, and what it is: with it, an earlier
// run's shard is left as it is if all three are still so. Throws Error.
void write_shards(const ShardJob& job);

// Takes the notes away from all of a finished conversion.
void remove_notes(const std::filesystem::path& folder);

}  // namespace braid
