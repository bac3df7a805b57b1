// `--sweep`: several configurations of one command line.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace braid {

// The values that a flag takes in turn.
struct Sweep {
  std::string flag;  // "--offload"
  std::vector<std::string> values;
};

// Parses "offload=none,block". Throws InputError, naming `flag`, for any other form.
Sweep read_sweep(const std::string& flag, const std::string& text);

// One value per flag.
using Setting = std::vector<std::pair<std::string, std::string>>;

// All combinations, the last sweep's values changing fastest; without sweeps one empty setting.
// Throws InputError for more than a thousand, and for a flag named by two sweeps.
std::vector<Setting> settings_of(const std::vector<Sweep>& sweeps);

// "offload block, tp 2"
std::string to_string(const Setting& setting);

}  // namespace braid
