// Cuts a message that arrives in pieces into the blocks of 64 bytes that SHA-1 and SHA-256 take,
// and pads its end as FIPS 180-4 says in section 5.1.1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/byte_order.h"
#include "base/hexadecimal.h"

namespace braid {

class BlockBuffer {
 public:
  static constexpr std::size_t kBlock = 64;  // bytes

  // Calls take(const char*) for each block that is complete.
  template <class Take>
  void add(std::string_view bytes, Take take) {
    total_ += bytes.size();
    if (!kept_.empty()) {
      const auto missing = std::min(kBlock - kept_.size(), bytes.size());
      kept_ += bytes.substr(0, missing);
      bytes.remove_prefix(missing);
      if (kept_.size() < kBlock) return;
      take(kept_.data());
      kept_.clear();
    }
    for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) take(bytes.data());
    kept_ = bytes;
  }

  // The last blocks, with the length of the message in bits.
  template <class Take>
  void finish(Take take) {
    const auto bits = total_ * 8;
    std::string tail = "\x80";
    while ((kept_.size() + tail.size()) % kBlock != kBlock - 8) tail += '\0';
    append_big_endian(tail, bits, 8);
    add(tail, take);
  }

 private:
  std::string kept_;  // less than a block
  std::uint64_t total_ = 0;
};

// Lower-case digits of the words, in order.
template <class Words>
std::string hex_digits_of_words(const Words& words) {
  std::string hex;
  for (const std::uint32_t word : words) hex += hex_digits(word);
  return hex;
}

}  // namespace braid
