// The tensors of a model's parts: how large each is, who shares it, in which page it lies. Found by
// making the parts without reading anything, so that it cannot differ from what a run loads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/memory.h"
#include "models/clip/model.h"
#include "models/flux/model.h"
#include "models/flux/sharding.h"
#include "models/t5/model.h"
#include "models/vae/config.h"
#include "pipeline/model_files.h"

namespace braid {

struct ModelSizes {
  FluxConfig flux;
  T5Config t5;
  ClipConfig clip;
  VaeConfig vae;
};

struct PlannedTensor {
  std::string layer;
  std::int64_t rows, columns;  // of one device; a vector has one column
  std::int64_t element_bytes;
  enum class Kind { kNumbers, kDense, kCodes } kind;   // dense: a matrix that may be quantised
  enum class Shared { kNot, kRows, kColumns } shared;  // among tensor parallel ranks
  std::int64_t block;  // in the order of use; -1: before the blocks; the number of blocks: after
  int leaf;            // of the layers that have pages of their own; -1: of none
};

struct PartTensors {
  std::vector<PlannedTensor> tensors;
  std::vector<std::int64_t> lists;  // blocks of each list of blocks: groups do not reach over
  std::int64_t num_blocks() const;
};

struct ModelTensors {
  PartTensors transformer, t5, clip, vae;
};

struct SurveyOptions {
  at::ScalarType dtype;
  SharedModulation modulation;
  std::vector<std::string> keep_dense = {};  // of the transformer
};

// `files`, where there are some, tell what is stored in 8 bits already. Throws InputError where
// they lack a tensor.
ModelTensors survey_model(const ModelSizes& sizes, const SurveyOptions& options,
                          const ModelFiles* files);

}  // namespace braid
