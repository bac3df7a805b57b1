// Any bytes are either JSON with readable fields, or give a one-sentence error.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace {

void ask(const braid::Json& json) {
  const braid::JsonObject object(json, "input");
  object.integer_or("integer", 1, 0, 1000);
  object.number_or("number", 1.0);
  object.flag_or("flag", true);
  object.string_or("string", "");
  object.integers_or("integers", {}, -5, 5);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    ask(braid::parse_json({reinterpret_cast<const char*>(data), size}, "input"));
  } catch (const braid::InputError&) {
  }
  return 0;
}
