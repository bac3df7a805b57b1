// The rows of a fused layer, one part per tensor of another spelling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/sharding.h"

namespace braid {

// Divides the `rows` of `layer` among `count` tensors: by the sharding's parts, with surplus parts
// going to the first tensor, otherwise evenly. Throws Error if that is impossible.
std::vector<std::int64_t> row_parts(const std::string& layer, std::int64_t rows, std::size_t count,
                                    const ShardingTable& shardings);

}  // namespace braid
