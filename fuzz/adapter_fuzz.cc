// Any safetensors header is either an adapter's, with each name a module and a role, or gives a
// one-sentence error.
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "weights/adapters/adapter_keys.h"
#include "weights/adapters/adapter_metadata.h"
#include "weights/files/safetensors_header.h"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

void check_name(const std::string& name) {
  const auto [module, role] = braid::parse_adapter_key(name);
  const bool is_whole = role == braid::AdapterRole::kReplacement;
  expect(is_whole ? module.size() <= name.size() : module.size() < name.size());
  const auto underscored = braid::underscored(module);
  expect(underscored.size() == module.size());
  expect(underscored.find('.') == std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    const auto entries = braid::parse_safetensors_header(bytes, "input");
    for (const auto& entry : entries) check_name(entry.name);
    const auto metadata = braid::read_adapter_metadata(bytes, "input");
    for (const auto& [part, scaling] : metadata.scalings)
      for (const auto& entry : entries)
        expect(!std::isnan(scaling.factor(entry.name, 4)) &&
               !std::isnan(scaling.factor_of_whole(entry.name)));
  } catch (const braid::InputError&) {
  }
  return 0;
}
