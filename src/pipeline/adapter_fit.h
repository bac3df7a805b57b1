// What a file of an adapter holds, and which published models it is for.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "weights/adapters/adapter_file.h"

namespace braid {

struct AdapterSummary {
  std::string spelling;                    // whose names it has: "sd-scripts"
  std::set<std::string> kinds = {};        // "LoRA", "DoRA", ...
  std::map<std::int64_t, int> ranks = {};  // how many modules have each
  std::int64_t modules = 0, parameters = 0, bytes = 0;
  // Published models that have a use for the most of its tensors, and whether that is all of them.
  std::vector<std::string> fits = {};
  bool fits_all = false;
};

AdapterSummary summary_of(const AdapterFile& file);

}  // namespace braid
