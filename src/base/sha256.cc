#include "base/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace braid {
namespace {

constexpr std::size_t kBlock = 64;  // bytes
using State = std::array<std::uint32_t, 8>;

// The first 32 fractional bits of the square roots (8) or cube roots (64) of the first primes.
template <std::size_t count, class Root>
std::array<std::uint32_t, count> fractions_of_primes(Root root) {
  std::array<std::uint32_t, count> out{};
  std::size_t found = 0;
  for (int n = 2; found < count; ++n) {
    bool is_prime = true;
    for (int d = 2; d * d <= n; ++d) is_prime = is_prime && n % d != 0;
    if (!is_prime) continue;
    const double value = root(double(n));
    out[found++] = std::uint32_t((value - std::floor(value)) * 4294967296.0);
  }
  return out;
}

std::uint32_t word_at(const char* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | std::uint8_t(bytes[i]);
  return word;
}

// Names follow section 6.2.2 of the standard.
void add_block(State& state, const char* bytes) {
  static const auto k = fractions_of_primes<64>([](double n) { return std::cbrt(n); });
  std::array<std::uint32_t, 64> w{};
  for (std::size_t t = 0; t < 16; ++t) w[t] = word_at(bytes + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const auto s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
    const auto s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t t = 0; t < 64; ++t) {
    const auto s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const auto t1 = h + s1 + ((e & f) ^ (~e & g)) + k[t] + w[t];
    const auto s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const auto t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const State mixed = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += mixed[i];
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  auto state = fractions_of_primes<8>([](double n) { return std::sqrt(n); });
  const auto bits = std::uint64_t(bytes.size()) * 8;
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) add_block(state, bytes.data());
  std::string tail(bytes);
  tail += '\x80';
  while (tail.size() % kBlock != kBlock - 8) tail += '\0';
  for (int shift = 56; shift >= 0; shift -= 8) tail += char(bits >> shift);
  for (std::size_t at = 0; at < tail.size(); at += kBlock) add_block(state, tail.data() + at);
  std::string hex;
  for (const auto word : state)
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15];
  return hex;
}

}  // namespace braid
