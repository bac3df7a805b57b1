// What an adapter's file holds, and which published models it is for.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "weights/adapters/adapter_file.h"

namespace braid {

struct AdapterSummary {
  std::string spelling;                    // naming scheme: "sd-scripts"
  std::set<std::string> kinds = {};        // "LoRA", "DoRA", ...
  std::map<std::int64_t, int> ranks = {};  // number of modules per rank
  std::int64_t modules = 0, parameters = 0, bytes = 0;
  // Published models that can use the largest number of its tensors, and whether that is all.
  std::vector<std::string> fits = {};
  bool fits_all = false;
};

AdapterSummary summary_of(const AdapterFile& file);

}  // namespace braid
