// A hostile tokenizer.json, its configuration and a text: "<json>\0<config>\0<text>".
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "text/build_tokenizer.h"

namespace {

// Removes and returns the text before the next zero byte, and removes that byte.
std::string_view take(std::string_view& rest) {
  const auto end = std::min(rest.find('\0'), rest.size());
  const auto out = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  try {
    braid::TokenizerFiles files{.folder = "fuzz"};
    files.tokenizer_json = take(rest);
    if (const auto config = take(rest); !config.empty()) files.tokenizer_config = config;
    (void)braid::build_tokenizer(files)->encode(rest, 64);
  } catch (const braid::InputError&) {
  }
  return 0;
}
