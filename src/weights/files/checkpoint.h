// The named tensors of one model part: in one file, safetensors or GGUF, or in several shards.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "weights/files/element_type.h"
#include "weights/packed_form.h"

namespace braid {

using at::Tensor;

// The order in which a stored matrix's elements are laid out.
enum class Arrangement {
  kRows,
  kTiles,    // of 128 rows and 4 columns, as NVIDIA's products read block scales
  kSquares,  // of scales: each is for a square of numbers, DeepSeek's
};
constexpr std::int64_t kSquareSide = 128;

struct StoredTensor;

// The tensors of a packed matrix as stored, in the order of its form.
struct PackedTensors {
  const PackedForm* form;
  std::vector<std::shared_ptr<const StoredTensor>> tensors;
};

// A tensor in a file. `file` keeps the mapping alive as long as any view of it.
struct StoredTensor {
  std::shared_ptr<const MappedFile> file;
  TensorEntry entry;
  // Factors for its numbers, in float32: one for all, one per row, one per group of neighbours in a
  // row, or one per square.
  std::shared_ptr<const StoredTensor> scales = {};
  Arrangement arrangement = Arrangement::kRows;  // tiles are stored whole, whatever the shape
  std::int64_t rotated_together = 0;  // neighbours in a row, by a Hadamard matrix; 0: none
  // If set, this is the matrix that they stand for: the entry has its shape and the values' bytes.
  std::shared_ptr<const PackedTensors> packed = {};

  // The dtype of its numbers; float32 if they must be decoded. Throws InputError for types LibTorch
  // cannot compute with.
  at::ScalarType dtype() const;
  bool is_readable() const;   // LibTorch can compute with its numbers
  bool is_quantized() const;  // has no view(): blocks, tiles, scales, rotations, packed
  // Its numbers, without a copy; read-only. Keeps the mapping alive. Must not be quantized.
  Tensor view() const;
  // The same of what is stored, which are codes if it is quantized.
  Tensor stored_view() const;
  bool is_aligned() const;  // may be used in place
};

using StoredByName = std::map<std::string, StoredTensor>;

class Checkpoint {
 public:
  // Opens the folder's weights, as find_weights() finds them. Beside a single file an index counts
  // only for diffusers' stem, and only if its shards are there. Throws InputError naming the file:
  // missing, missing shard, malformed, a tensor in two shards or in another than the
  // index says, of another format.
  static Checkpoint open(const std::filesystem::path& folder, const std::string& stem);
  static Checkpoint open_file(const std::filesystem::path& path);
  // A checkpoint without tensors; `source` is for errors.
  static Checkpoint none(std::string source) { return Checkpoint(std::move(source)); }

  // The tensors whose names begin with none of `prefixes`.
  Checkpoint without(const std::vector<std::string>& prefixes) const;
  // The tensors whose names begin with `prefix`, which is removed.
  Checkpoint part(const std::string& prefix) const;

  const StoredTensor* find(const std::string& name) const;  // nullptr when absent
  const StoredByName& tensors() const { return tensors_; }
  // The tensors that an index names and no shard has, with the files where they should be.
  const std::map<std::string, std::string>& absent() const { return absent_; }
  // What the files hold: the tensors, and the scales and marks that were joined to them.
  std::vector<const TensorEntry*> entries() const;
  const std::string& source() const { return source_; }  // for errors: the file or its index
  // A sentence for people, if there was a choice of files; else empty.
  const std::string& note() const { return note_; }
  std::uint64_t num_bytes() const;  // of all entries
  std::int64_t num_parameters() const;
  // The dtype of most floating-point parameters, ignoring scales of codes; bfloat16 if most are
  // coded, float32 for an empty checkpoint.
  at::ScalarType dtype() const;

 private:
  explicit Checkpoint(std::string source) : source_(std::move(source)) {}
  static Checkpoint open_index(const std::filesystem::path& index);
  void add(const std::filesystem::path& path);
  // Joins the tensors that stand for one matrix, and refuses forms that are not known.
  void join(const std::filesystem::path& source);
  // Says that the files beside `read` were left alone; nothing if there are none.
  Checkpoint noting(const std::filesystem::path& read,
                    const std::vector<std::filesystem::path>& left_alone) &&;

  std::string source_, note_;
  StoredByName tensors_;
  StoredByName joined_;  // the scales and marks
  std::map<std::string, std::string> absent_;
};

}  // namespace braid
