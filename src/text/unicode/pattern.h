// The patterns of tokenizer.json: {"String": "..."} or {"Regex": "..."}.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/split.h"

namespace braid::text {

// Covers a text with matches and the ranges between them.
using Find = std::function<std::vector<Span>(std::string_view)>;

// Reads `owner["pattern"]`. Throws InputError naming the source.
Find read_pattern(const JsonObject& owner);

}  // namespace braid::text
