// How a checkpoint is loaded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weights/paging/pages.h"
#include "weights/sources/pieces.h"

namespace braid {

// What shares a page: all of a model, some blocks, or the weight of one layer.
enum class PageLevel { kModel, kBlock, kLeaf };

struct Paging {
  std::shared_ptr<Pages> pages = {};  // none: weights are on the device
  PageLevel level = PageLevel::kModel;
  std::int64_t blocks = 1;  // of a group, for kBlock
};

// What becomes of matrices that are stored in blocks, or in float8: numbers of the load's dtype, or
// what they are in the file, so that they take as much memory.
enum class Coded { kWidened, kKept };

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Told the bytes of the checkpoint each time some have been read, or left alone on purpose; may
  // throw to end the load.
  std::function<void(std::int64_t bytes)> on_bytes = {};
  // Told of each tensor what was copied out of the files, or is used in place in them.
  std::function<void(const BytesRead& read)> on_read = {};
  // The ranks that share the weights, by a sharding table; each loads its own share. One rank: all
  // of it.
  Group tensor_parallel = {};
  // Of matrices whose layer matches none of `keep_dense`; what a checkpoint has in 8 bits stays so.
  Quantize quantize = Quantize::kNone;
  std::vector<std::string> keep_dense = {};
  Coded coded = Coded::kWidened;  // of what is not quantised
  Paging paging = {};
};

}  // namespace braid
