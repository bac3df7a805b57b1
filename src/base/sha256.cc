#include "base/sha256.h"

#include <bit>
#include <cmath>

namespace braid {
namespace {

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

// Names follow section 6.2.2 of the standard.
void add_block(State& state, const char* bytes) {
  static const auto k = fractions_of_primes<64>([](double n) { return std::cbrt(n); });
  std::array<std::uint32_t, 64> w{};
  for (std::size_t t = 0; t < 16; ++t) w[t] = std::uint32_t(big_endian(bytes + 4 * t, 4));
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

Sha256::Sha256() : state_(fractions_of_primes<8>([](double n) { return std::sqrt(n); })) {}

void Sha256::add(std::string_view bytes) {
  blocks_.add(bytes, [this](const char* block) { add_block(state_, block); });
}

std::string Sha256::hex() {
  blocks_.finish([this](const char* block) { add_block(state_, block); });
  return hex_digits_of_words(state_);
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 digest;
  digest.add(bytes);
  return digest.hex();
}

}  // namespace braid
