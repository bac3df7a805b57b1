// The shapes of a checkpoint's tensors by our paths: a model's configuration is inferred from them.
#pragma once

#include <cstdint>
#include <string>

#include "weights/files/checkpoint.h"
#include "weights/names.h"

namespace braid {

class StoredShapes {
 public:
  // `kind` is what the checkpoint should be: "FLUX.2 transformer".
  StoredShapes(const Checkpoint& checkpoint, Names names, std::string kind);

  // The first of the stored tensors that ours is joined from.
  bool has(const std::string& path) const;
  // Throws InputError naming the tensor as the checkpoint would if there is none with such a dim.
  std::int64_t extent(const std::string& path, std::size_t dim) const;
  // How many blocks the list has, by a tensor that each of them has.
  std::int64_t num_blocks(const std::string& list, const std::string& tensor) const;
  // Throws InputError unless heads of this width divide the width of the tokens.
  std::int64_t num_heads(std::int64_t width, std::int64_t head_width) const;

 private:
  std::string stored_name(const std::string& path) const;

  const Checkpoint& checkpoint_;
  Names names_;
  std::string kind_;
};

}  // namespace braid
