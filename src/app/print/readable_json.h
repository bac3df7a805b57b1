// JSON as people read it: a line for each value, objects indented.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace braid {

using OrderedJson = nlohmann::ordered_json;

// "key  value" lines. Numbers under keys that end in "bytes" get a unit, those under "parameters"
// separators.
std::string readable_json(const OrderedJson& object);

// Two blanks of indentation and a newline at the end. Bytes that are not UTF-8, as paths may have,
// become U+FFFD.
std::string json_text(const OrderedJson& json);

}  // namespace braid
