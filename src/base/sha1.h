// SHA-1 (FIPS 180-4), by which git names what it stores.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/block_buffer.h"

namespace braid {

// The digest of a message that arrives in pieces.
class Sha1 {
 public:
  void add(std::string_view bytes);
  std::string hex();  // 40 lower-case digits; ends the message

 private:
  std::array<std::uint32_t, 5> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                         0xc3d2e1f0};
  BlockBuffer blocks_;
};

// What git hashes before the contents of a file of `size` bytes.
std::string git_blob_head(std::uint64_t size);

}  // namespace braid
