// Any bytes are either a safetensors file with every tensor inside it, or give a sentence as error.
#include "base/error.h"
#include "entries.h"
#include "weights/files/safetensors_header.h"

namespace {

// Computed here: the reader's own count may overflow.
std::uint64_t counted_bytes(const braid::TensorEntry& entry) {
  auto bytes = std::uint64_t(braid::block_of(entry.type).bytes);
  for (const auto extent : entry.shape)
    expect(extent >= 0 && !__builtin_mul_overflow(bytes, std::uint64_t(extent), &bytes));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    check_entries(braid::parse_safetensors_header({bytes, size}, "input"), size, counted_bytes);
  } catch (const braid::InputError&) {
  }
  return 0;
}
