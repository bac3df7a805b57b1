// JSON in readable form: one line per value, objects indented.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace braid {

using OrderedJson = nlohmann::ordered_json;

// "key  value" lines. Numbers under keys ending in "bytes" get a unit, those under "parameters"
// thousands separators.
std::string readable_json(const OrderedJson& object);

// Indented by two blanks, with a final newline. Bytes that are not UTF-8, as in paths, become
// U+FFFD.
std::string indented_json(const OrderedJson& json);

}  // namespace braid
