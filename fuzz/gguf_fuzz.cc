// Any bytes are either a GGUF file with every tensor inside it, or give a one-sentence error.
#include "base/error.h"
#include "entries.h"
#include "weights/files/gguf_header.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    check_entries(braid::parse_gguf_header({bytes, size}, "input"), size, [](const auto& entry) {
      return braid::bytes_of(entry.shape, entry.type, "input");
    });
  } catch (const braid::InputError&) {
  }
  return 0;
}
