// What a model directory holds.
#pragma once

#include "app/print/readable_json.h"
#include "braid/braid.h"

namespace braid {

// Its parts with their configuration, dtype, parameters and bytes. Headers are read, weights are
// not. Throws InputError.
OrderedJson model_info(const PipelineOptions& options);

// Of one file of weights: parameters and bytes, together and of each type.
OrderedJson weights_info(const std::filesystem::path& path);

// What people look for first in it: the family, the parts with their sizes, what a request gets
// that says nothing.
std::string model_summary(const OrderedJson& model);

}  // namespace braid
