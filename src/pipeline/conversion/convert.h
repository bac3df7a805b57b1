// From one model directory, or single file, to another: quantised, in another dtype, with other
// names.
#pragma once

#include "braid/braid.h"

namespace braid {

struct ConvertOptions {
  std::filesystem::path model, components = {};  // as in PipelineOptions
  std::vector<Adapter> adapters = {};            // become part of the new model
  std::filesystem::path out;                     // must not exist
  Dtype dtype = Dtype::kAuto;  // of the transformer and large text encoders; kAuto: as stored
  Memory memory = {};          // what is quantised, and what is not
  enum class Form { kDirectory, kSingleFile } form = Form::kDirectory;
};

// Writes a model directory in the layout and with the names of diffusers, or the transformer alone
// in one file with Black Forest Labs' names. Dense layers in 8 bits are `weight` (int8) and
// `weight_scale`, and are loaded without being quantised again. `out` appears when it is whole and
// checked; until then its files lie in OUT.partial, with which the same command goes on when it was
// interrupted, and another starts anew with a warning. Throws InputError, also where `out` lies in
// a part of the model or another conversion to `out` is at work, and Error.
void convert(const ConvertOptions& options, const Hooks& hooks = {});

}  // namespace braid
