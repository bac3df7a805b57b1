// How a model is loaded.
#pragma once

#include "braid/braid.h"
#include "pipeline/families/text_encoders.h"
#include "weights/adapters/adapter_file.h"

namespace braid {

struct ModelOptions {
  std::shared_ptr<const Family> family = {};  // what the files are of
  at::Device device = at::kCPU;
  Dtype dtype = Dtype::kAuto;
  std::function<void(std::int64_t bytes)> on_bytes = {};
  Warn warn = {};
  Layout layout = {};
  int ranks_on_device = 1;
  Memory memory = {};
  Graphs graphs = Graphs::kAuto;
  TextStream text_stream = TextStream::kShared;
  CacheOptions cache = {};
  std::int64_t encoded_cache = 0;  // bytes
  std::vector<AppliedAdapter> adapters = {};
  AdapterMode adapter_mode = AdapterMode::kAuto;
};

}  // namespace braid
