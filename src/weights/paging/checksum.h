// XXH64 (Yann Collet's xxHash, 64 bits), as fast as memory reads. Guards against damage and
// mix-ups, not against forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace braid {

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace braid
