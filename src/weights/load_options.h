// How a checkpoint is loaded.
#pragma once

#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weights/matrix.h"

namespace braid {

class Pages;
struct BytesRead;

// The contents of a page: a whole model, some blocks, or one layer's weight.
enum class PageLevel { kModel, kBlock, kLeaf };

struct Paging {
  std::shared_ptr<Pages> pages = {};  // none: weights stay on the device
  PageLevel level = PageLevel::kModel;
  std::int64_t blocks = 1;  // per page, for kBlock
};

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Called with the bytes of the checkpoint each time some were read, or deliberately skipped; may
  // throw to end the load.
  std::function<void(std::int64_t bytes)> on_bytes = {};
  // Called per tensor with what was copied out of the files or is used in place.
  std::function<void(const BytesRead& read)> on_read = {};
  // The ranks that share the weights according to a sharding table; each loads its own share. One
  // rank loads everything.
  Group tensor_parallel = {};
  // The form of matrices whose layer matches none of `keep_dense`; a checkpoint's 8-bit codes are
  // kept.
  Quantize quantize = Quantize::kNone;
  std::vector<std::string> keep_dense = {};
  StoredCodes stored_codes = StoredCodes::kWidened;  // for what is not quantized
  bool wants_unused = false;  // also layers that the network does not run, for surveys
  Paging paging = {};
  // Layers that may run beside others of their block run on it; none: all share the current one.
  std::optional<c10::Stream> second_stream = {};
};

}  // namespace braid
