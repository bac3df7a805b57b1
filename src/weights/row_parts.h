// The rows of a fused layer, one part a tensor of another spelling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/sharding.h"

namespace braid {

// How many of the `rows` of `layer` each of `count` tensors has: as wide as the sharding's parts,
// of which the first tensor has those that are left over, else all alike. Throws Error where they
// cannot be.
std::vector<std::int64_t> row_parts(const std::string& layer, std::int64_t rows, std::size_t count,
                                    const ShardingTable& shardings);

}  // namespace braid
