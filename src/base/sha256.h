// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/block_buffer.h"

namespace braid {

std::string sha256_hex(std::string_view bytes);  // 64 lower-case digits

// The same of a message that arrives in pieces.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  std::string hex();  // ends the message

 private:
  std::array<std::uint32_t, 8> state_;
  BlockBuffer blocks_;
};

}  // namespace braid
