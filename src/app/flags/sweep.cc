#include "app/flags/sweep.h"

#include <algorithm>

#include "app/flags/flag_values.h"

namespace braid {
namespace {

constexpr std::size_t kMostSettings = 1000;

}  // namespace

Sweep read_sweep(const std::string& flag, const std::string& text) {
  const auto equals = text.find('=');
  const bool has_name = equals != std::string::npos && equals > 0 && !text.starts_with('-');
  Sweep sweep;
  if (has_name) {
    sweep.flag = "--" + text.substr(0, equals);
    sweep.values = split_at_commas(text.substr(equals + 1));
  }
  const bool has_values =
      has_name && std::none_of(sweep.values.begin(), sweep.values.end(),
                               [](const std::string& value) { return value.empty(); });
  require(has_values, flag, " should be a flag and its values, as in offload=none,block, it is ",
          in_quotes(text));
  return sweep;
}

std::vector<Setting> settings_of(const std::vector<Sweep>& sweeps) {
  std::size_t count = 1;
  for (const auto& sweep : sweeps) {
    require(sweep.values.size() <= kMostSettings / count, "the sweeps make more than ",
            kMostSettings, " configurations");
    count *= sweep.values.size();
  }
  std::vector<Setting> settings(1);
  for (auto sweep = sweeps.begin(); sweep != sweeps.end(); ++sweep) {
    require(std::none_of(sweeps.begin(), sweep,
                         [&](const Sweep& other) { return other.flag == sweep->flag; }),
            "two --sweep name ", sweep->flag, ": give all of its values in one");
    std::vector<Setting> longer;
    for (const auto& setting : settings)
      for (const auto& value : sweep->values) {
        longer.push_back(setting);
        longer.back().emplace_back(sweep->flag, value);
      }
    settings = std::move(longer);
  }
  return settings;
}

std::string to_string(const Setting& setting) {
  std::string text;
  for (const auto& [flag, value] : setting)
    text += (text.empty() ? "" : ", ") + flag.substr(2) + " " + value;
  return text;
}

}  // namespace braid
