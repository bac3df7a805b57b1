// The tensors of a model's parts: how large each is, who shares it, in which page it lies. Found by
// making the parts without reading anything, so that it cannot differ from what a run loads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/memory.h"
#include "pipeline/families/family.h"

namespace braid {

struct PlannedTensor {
  std::string layer;
  std::int64_t rows, columns;  // of one device; a vector has one column
  std::int64_t element_bytes;
  enum class Kind { kNumbers, kDense, kCodes } kind;  // dense: a matrix that may be quantised
  // As which a dense matrix is kept that is not quantised: in the blocks of its file, or as
  // numbers.
  Block kept;
  // Among tensor parallel ranks; kGathered: rows, and every rank gets all outputs.
  enum class Shared { kNot, kRows, kGathered, kColumns } shared;
  std::int64_t block;  // in the order of use; -1: before the blocks; the number of blocks: after
  int leaf;            // of the layers that have pages of their own; -1: of none
  PageUse use;         // once a picture, or in every step
  // As the sharding cuts what is shared.
  std::vector<std::int64_t> parts = {};
  std::int64_t unit = 0;
};

struct PartTensors {
  std::vector<PlannedTensor> tensors;
  std::vector<std::int64_t> lists;  // blocks of each list of blocks: groups do not reach over
  std::int64_t num_blocks() const;
};

// Of all parts of a model, in the order of its description.
struct ModelTensors {
  std::vector<const Part*> parts;
  std::vector<PartTensors> tensors;

  const PartTensors& of(const Part& part) const;
  const PartTensors& of(Part::Role role) const;  // the first of this role
};

struct SurveyOptions {
  at::ScalarType dtype;
  SharedModulation modulation;
  std::vector<std::string> keep_dense = {};  // of the transformer
  Coded coded = Coded::kWidened;             // as LoadOptions says
};

// `files`, where there are some, tell what is stored in 8 bits already. Throws InputError where
// they lack a tensor.
ModelTensors survey_model(const Family& family, const SurveyOptions& options,
                          const ModelFiles* files);

// The numbers of one tensor, and the rows, that a tensor parallel rank of `ranks` holds. None holds
// more than the first.
std::int64_t numbers_of(const PlannedTensor& tensor, int ranks, int rank = 0);
std::int64_t rows_of(const PlannedTensor& tensor, int ranks, int rank);

// Parameters of each block, in the order of use: of a surveyed part, and of a family's denoiser.
std::vector<std::int64_t> block_parameters(const PartTensors& part);
std::vector<std::int64_t> block_parameters(const Family& family);

}  // namespace braid
