#include "weights/stored_shapes.h"

#include <utility>

#include "base/error.h"

namespace braid {

StoredShapes::StoredShapes(const Checkpoint& checkpoint, Names names, std::string kind)
    : checkpoint_(checkpoint), names_(std::move(names)), kind_(std::move(kind)) {}

std::string StoredShapes::stored_name(const std::string& path) const {
  return origins_of(names_, path).front().tensors.front();
}

bool StoredShapes::has(const std::string& path) const {
  return checkpoint_.find(stored_name(path)) != nullptr;
}

std::int64_t StoredShapes::extent(const std::string& path, std::size_t dim) const {
  const auto name = stored_name(path);
  const auto* const tensor = checkpoint_.find(name);
  require(tensor && tensor->entry.shape.size() > dim, checkpoint_.source(), " is no ", kind_,
          ": it has no tensor '", name, "' of ", dim + 1, " dims");
  return tensor->entry.shape[dim];
}

std::int64_t StoredShapes::num_blocks(const std::string& list, const std::string& tensor) const {
  constexpr std::int64_t kMost = 10'000;
  std::int64_t n = 0;
  while (n < kMost && has(text_of(list, ".", n, ".", tensor))) ++n;
  return n;
}

std::int64_t StoredShapes::num_heads(std::int64_t width, std::int64_t head_width) const {
  require(head_width > 0 && width >= head_width && width % head_width == 0, checkpoint_.source(),
          ": heads of width ", head_width, " do not divide the hidden width ", width);
  return width / head_width;
}

}  // namespace braid
