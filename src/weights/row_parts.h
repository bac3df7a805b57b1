// The rows of a fused layer, one part per tensor of another spelling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/sharding.h"

namespace braid {

// Divides the `rows` of `layer` among `count` tensors: by the sharding's parts, of which each
// tensor has as many as `parts` says (KeyRule::parts), otherwise evenly. Throws Error if that is
// impossible.
std::vector<std::int64_t> row_parts(const std::string& layer, std::int64_t rows, std::size_t count,
                                    const ShardingTable& shardings,
                                    const std::vector<int>& parts = {});

}  // namespace braid
