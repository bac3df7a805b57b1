#include "base/sha1.h"

#include <bit>

namespace braid {
namespace {

using Sha1State = std::array<std::uint32_t, 5>;

// The function and the constant of step t, by section 4.1.1 and 4.2.1 of the standard.
std::uint32_t sha1_step(std::size_t t, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  switch (t / 20) {
    case 0:
      return ((b & c) | (~b & d)) + 0x5a827999;
    case 1:
      return (b ^ c ^ d) + 0x6ed9eba1;
    case 2:
      return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    default:
      return (b ^ c ^ d) + 0xca62c1d6;
  }
}

void add_sha1_block(Sha1State& state, const char* bytes) {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t t = 0; t < 16; ++t) w[t] = std::uint32_t(big_endian(bytes + 4 * t, 4));
  for (std::size_t t = 16; t < w.size(); ++t)
    w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  auto [a, b, c, d, e] = state;
  for (std::size_t t = 0; t < w.size(); ++t) {
    const auto next = std::rotl(a, 5) + sha1_step(t, b, c, d) + e + w[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const Sha1State added = {a, b, c, d, e};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

void Sha1::add(std::string_view bytes) {
  blocks_.add(bytes, [this](const char* block) { add_sha1_block(state_, block); });
}

std::string Sha1::hex() {
  blocks_.finish([this](const char* block) { add_sha1_block(state_, block); });
  return hex_digits_of_words(state_);
}

std::string git_blob_head(std::uint64_t size) {
  return "blob " + std::to_string(size) + std::string(1, '\0');
}

}  // namespace braid
