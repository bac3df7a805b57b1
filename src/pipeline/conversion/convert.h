// Converts a model directory, or single file, to another one: quantized, in another dtype, with
// other names.
#pragma once

#include "braid/braid.h"

namespace braid {

struct ConvertOptions {
  std::filesystem::path model, components = {}, published = {};  // as in PipelineOptions
  std::vector<Adapter> adapters = {};                            // fused into the new model
  std::filesystem::path out;                                     // must not exist
  Dtype dtype = Dtype::kAuto;  // of the transformer and large text encoders; kAuto: as stored
  Memory memory = {};          // what is quantized and what is not
  // Language models keep only the layers that Braid runs. Other programs cannot read the result.
  bool only_used_layers = false;
  enum class Form { kDirectory, kSingleFile } form = Form::kDirectory;
};

// Writes a model directory in diffusers' layout and names, or the transformer alone in one file
// with Black Forest Labs' names. Dense layers in 8 bits are `weight` (int8) and `weight_scale`,
// and load without being quantized again. A single file has the metadata of the one it is made of,
// and the name of its model. Text encoders keep what Braid does not run, in the same dtype, so
// that transformers reads them back. `out` appears once it is complete and checked. Until then its
// files lie in OUT.partial: the same command resumes there, another one starts anew with a
// warning. Throws Error, and InputError, also if `out` lies in a part of the model or another
// conversion to `out` is running.
void convert(const ConvertOptions& options, const Hooks& hooks = {});

}  // namespace braid
