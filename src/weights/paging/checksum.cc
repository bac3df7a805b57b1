#include "weights/paging/checksum.h"

#include <bit>
#include <cstring>

namespace braid {
namespace {

constexpr std::uint64_t kPrimes[] = {0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                                     0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5};

template <class Word>
std::uint64_t word_at(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

std::uint64_t round_of(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrimes[1], 31) * kPrimes[0];
}

std::uint64_t merged(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round_of(0, lane)) * kPrimes[0] + kPrimes[3];
}

// Four lanes over blocks of 32 bytes; advances `at` past the last whole block.
std::uint64_t hash_blocks(const std::byte*& at, const std::byte* end, std::uint64_t seed) {
  std::uint64_t lanes[] = {seed + kPrimes[0] + kPrimes[1], seed + kPrimes[1], seed,
                           seed - kPrimes[0]};
  for (; end - at >= 32; at += 32)
    for (int i = 0; i < 4; ++i) lanes[i] = round_of(lanes[i], word_at<std::uint64_t>(at + 8 * i));
  auto hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
              std::rotl(lanes[3], 18);
  for (const auto lane : lanes) hash = merged(hash, lane);
  return hash;
}

std::uint64_t hash_rest(std::uint64_t hash, const std::byte* at, const std::byte* end) {
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ round_of(0, word_at<std::uint64_t>(at)), 27) * kPrimes[0] + kPrimes[3];
  for (; end - at >= 4; at += 4)
    hash =
        std::rotl(hash ^ (word_at<std::uint32_t>(at) * kPrimes[0]), 23) * kPrimes[1] + kPrimes[2];
  for (; at < end; ++at)
    hash = std::rotl(hash ^ (std::uint64_t(*at) * kPrimes[4]), 11) * kPrimes[0];
  return hash;
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
  const auto* at = bytes.data();
  const auto* const end = at + bytes.size();
  auto hash = bytes.size() >= 32 ? hash_blocks(at, end, seed) : seed + kPrimes[4];
  hash = hash_rest(hash + bytes.size(), at, end);
  hash = (hash ^ (hash >> 33)) * kPrimes[1];
  hash = (hash ^ (hash >> 29)) * kPrimes[2];
  return hash ^ (hash >> 32);
}

}  // namespace braid
