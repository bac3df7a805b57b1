// Any bytes are either a safetensors file, every tensor of which lies inside it, or one sentence.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "weights/files/safetensors_header.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

void check_entries(std::vector<braid::TensorEntry> entries, std::uint64_t file_size) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::uint64_t end = 0;
  for (const auto& entry : entries) {
    auto bytes = std::uint64_t(braid::block_of(entry.type).bytes);
    for (const auto extent : entry.shape) {
      expect(extent >= 0 && !__builtin_mul_overflow(bytes, std::uint64_t(extent), &bytes));
    }
    expect(entry.size == bytes && entry.begin <= file_size && bytes <= file_size - entry.begin);
    expect(bytes == 0 || entry.begin >= end);
    end = std::max(end, entry.begin + bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    check_entries(braid::parse_safetensors_header({bytes, size}, "input"), size);
  } catch (const braid::InputError&) {
  }
  return 0;
}
