// The tensors of a model's parts: size, sharding and page of each. Found by constructing the parts
// without reading anything, so it cannot differ from what a run loads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/memory.h"
#include "pipeline/families/family.h"
#include "weights/sources/tensor_plan.h"

namespace braid {

struct PlannedTensor {
  std::string layer;
  std::int64_t rows, columns;                         // on one device; a vector has one column
  at::ScalarType dtype;                               // of its numbers
  enum class Kind { kNumbers, kDense, kCodes } kind;  // dense: a quantizable matrix
  // What it is kept as where it is not quantized: numbers, or tensors of its file.
  std::vector<KeptTensor> kept;
  bool is_packed = false;   // in a packed form, which is widened before it multiplies
  bool is_rotated = false;  // kCodes of rotated numbers, see form_of_rotated()
  Quantize stored_form = Quantize::kNone;  // of kCodes, in their file
  // How tensor parallel ranks share it; kGathered: by rows, and every rank gets all outputs.
  enum class Shared { kNot, kRows, kGathered, kColumns } shared;
  std::int64_t block;  // in the order of use; -1: before the blocks; the number of blocks: after
  int leaf;            // of the layers that have pages of their own; -1: of none
  std::int64_t unpaged_parts = 1;  // it keeps one of so many equal parts where it has no page
  bool is_in_block = false;        // of the blocks that have pages of their own
  PageUse use;                     // once a picture, or in every step
  // Where adapters' changes go, and the sum of the ranks of those that may stay beside it.
  AdapterPlace adapters = AdapterPlace::kNumbers;
  std::int64_t low_rank_rank = 0;
  std::optional<Sharding> sharding = {};

  std::int64_t element_bytes() const { return std::int64_t(c10::elementSize(dtype)); }
  // Stored neither as numbers nor in our codes.
  bool is_kept_as_stored() const { return kind != Kind::kCodes && kept.front().dtype == at::kByte; }
};

struct PartTensors {
  std::vector<PlannedTensor> tensors;
  std::vector<std::int64_t> lists;  // block count of each list; groups do not span lists
  std::int64_t num_blocks() const;
};

// All parts of a model, in the order of its description.
struct ModelTensors {
  std::vector<const Part*> parts;
  std::vector<PartTensors> tensors;

  const PartTensors& of(const Part& part) const;
  const PartTensors& of(Part::Role role) const;  // the only one of this role
};

struct SurveyOptions {
  at::ScalarType dtype;
  SharedModulation modulation;
  std::vector<std::string> keep_dense = {};          // of transformer and ControlNets
  StoredCodes stored_codes = StoredCodes::kWidened;  // as LoadOptions says
  AdapterMode adapters = AdapterMode::kAuto;
};

// `files`, if given, say what is already stored in 8 bits. Throws InputError if they lack a tensor.
ModelTensors survey_model(const Family& family, const SurveyOptions& options,
                          const ModelFiles* files);

// What a tensor parallel rank holds of a tensor.
struct TensorShare {
  std::int64_t rows, columns;
  std::vector<Share> runs;  // of columns; none: all of them

  std::int64_t numbers() const { return rows * columns; }
};

// Throws InputError for ranks that cannot share it.
TensorShare share_of_tensor(const PlannedTensor& tensor, const Shares& ranks, int rank);
std::int64_t numbers_of(const PlannedTensor& tensor, const Shares& ranks, int rank = 0);

// Why these ranks cannot share a part; nothing if they can.
std::optional<std::string> why_not_shared(const PartTensors& part, const Shares& ranks);

// Parameters of each block, in order of use: of a surveyed part, and of a family's denoisers
// together, whose blocks pipeline parallelism divides alike.
std::vector<std::int64_t> block_parameters(const PartTensors& part);
std::vector<std::int64_t> block_parameters(const Family& family, const ModelTensors& tensors);
std::vector<std::int64_t> block_parameters(const Family& family);

}  // namespace braid
