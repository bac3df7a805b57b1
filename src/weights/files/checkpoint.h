// The named tensors of one model part, in one file, safetensors or GGUF, or several shards.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "weights/files/element_type.h"

namespace braid {

using at::Tensor;

// How the elements of a stored matrix follow each other.
enum class Arrangement {
  kRows,
  kTiles,  // of 128 rows and 4 columns, as NVIDIA's products read the scales of blocks
};

// A tensor where it lies: `file` keeps the mapping alive as long as any view of it.
struct StoredTensor {
  std::shared_ptr<const MappedFile> file;
  TensorEntry entry;
  // What its numbers are to be multiplied by, in float32: one for all, one a row, or one for some
  // neighbours in a row.
  std::shared_ptr<const StoredTensor> scales = {};
  Arrangement arrangement = Arrangement::kRows;  // tiles are stored whole, whatever the shape
  std::int64_t rotated_together = 0;  // neighbours in a row, by a Hadamard matrix; 0: none

  // That of its numbers, float32 where they have to be decoded. Throws InputError for types
  // LibTorch cannot compute with.
  at::ScalarType dtype() const;
  bool is_coded() const;    // no view could be used as it is: blocks, tiles, scales, rotations
  Tensor view() const;      // no copy; keeps the mapping alive; not to be written
  bool is_aligned() const;  // may be used in place
};

class Checkpoint {
 public:
  // DIR/STEM.safetensors, the shards that DIR/STEM.safetensors.index.json lists, or DIR/STEM.gguf.
  // Throws InputError naming the file: missing, missing shard, malformed, a tensor in two shards.
  static Checkpoint open(const std::filesystem::path& folder, const std::string& stem);
  static Checkpoint open_file(const std::filesystem::path& path);
  // Without tensors; `source` is for errors.
  static Checkpoint none(std::string source) { return Checkpoint(std::move(source)); }

  // The tensors whose names begin with this, without it.
  Checkpoint part(const std::string& prefix) const;

  const StoredTensor* find(const std::string& name) const;  // nullptr when absent
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::string& source() const { return source_; }  // for errors: the file or its index
  std::uint64_t num_bytes() const;
  std::int64_t num_parameters() const;
  // The dtype that most of the floating-point parameters have, scales of codes aside; bfloat16
  // where most are coded, float32 for an empty checkpoint.
  at::ScalarType dtype() const;

 private:
  explicit Checkpoint(std::string source) : source_(std::move(source)) {}
  void add(const std::filesystem::path& path);

  std::string source_;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace braid
