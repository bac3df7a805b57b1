// A hostile spiece.model, and a text: the text's length in one byte, the text, the model.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/build_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto length = std::min<std::size_t>(data[0], rest.size());
  try {
    braid::TokenizerFiles files{.folder = "fuzz"};
    files.spiece_model = rest.substr(length);
    (void)braid::build_tokenizer(files)->encode(rest.substr(0, length), 64);
  } catch (const braid::InputError&) {
  }
  return 0;
}
