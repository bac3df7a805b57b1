// The contents of a model directory.
#pragma once

#include "app/print/readable_json.h"
#include "pipeline/deployment/deployment.h"

namespace braid {

// Its parts with their configuration, dtype, parameters and bytes. Reads headers, not weights.
OrderedJson model_info(const Deployment& deployment);

// Counts a single file's parameters and bytes, in total and per type.
OrderedJson weights_info(const std::filesystem::path& path);

// What people look for first: the family, the parts with their sizes, and a request's defaults.
std::string model_summary(const OrderedJson& model);

}  // namespace braid
