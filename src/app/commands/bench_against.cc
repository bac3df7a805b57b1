#include "app/commands/bench_against.h"

#include <algorithm>
#include <string_view>

#include "app/words/readable.h"
#include "base/error.h"
#include "base/json.h"

namespace braid {
namespace {

// Keys that must be equal for times to be comparable.
constexpr const char* kSame[] = {"model", "double", "single", "size",    "tokens", "config",
                                 "gpus",  "dtype",  "device", "machine", "threads"};

// 0.2 wrote pp as layers.
std::string in_our_words(std::string config) {
  constexpr std::string_view kOlder = "layers ";
  const auto at = config.find(kOlder);
  return at == config.npos ? config : config.replace(at, kOlder.size(), "pp ");
}

std::string shown(const OrderedJson& result, const char* key) {
  const auto it = result.find(key);
  if (it == result.end()) return "nothing";
  return it->is_string() ? in_quotes(in_our_words(it->get<std::string>())) : it->dump();
}

// If `result` holds only settings, compares only the keys it has.
std::vector<const char*> differences(const OrderedJson& result, const OrderedJson& other) {
  const bool is_whole = result.contains("step_s");
  std::vector<const char*> keys;
  for (const auto* const key : kSame)
    if ((is_whole || result.contains(key)) && shown(result, key) != shown(other, key))
      keys.push_back(key);
  return keys;
}

struct Match {
  const OrderedJson* same = nullptr;
  std::string missing = {};  // what differs in the nearest result, if none is the same
};

Match find_same(const OrderedJson& result, const std::vector<OrderedJson>& before) {
  const OrderedJson* nearest = nullptr;
  std::vector<const char*> fewest;
  for (const auto& other : before) {
    const auto different = differences(result, other);
    if (nearest && different.size() >= fewest.size()) continue;
    nearest = &other;
    fewest = different;
  }
  if (fewest.empty()) return {.same = nearest};
  std::string list;
  for (const auto* const key : fewest)
    list += text_of(list.empty() ? "" : ", ", key, " was ", shown(*nearest, key), " and is ",
                    shown(result, key));
  return {.missing =
              "--against has no result of the same configuration: in the nearest one, " + list};
}

bool is_failure(const OrderedJson& result) { return result.contains("failure"); }

// A quantile of the sorted seconds, by nearest rank.
double quantile(const OrderedJson& result, double part) {
  auto seconds = result.at("steps_s").get<std::vector<double>>();
  std::sort(seconds.begin(), seconds.end());
  return seconds[std::size_t(part * double(seconds.size() - 1) + 0.5)];
}

bool is_slower(const OrderedJson& now, const OrderedJson& before, double tolerance) {
  const bool is_beyond_tolerance =
      now.at("step_s").get<double>() > (1 + tolerance) * before.at("step_s").get<double>();
  return is_beyond_tolerance && quantile(now, 0.25) > quantile(before, 0.75);
}

void check_result(const OrderedJson& result, const std::string& file) {
  const auto has = [&](const char* key) { return result.is_object() && result.contains(key); };
  const bool is_whole = has("step_s") && result["step_s"].is_number() && has("steps_s") &&
                        result["steps_s"].is_array() && !result["steps_s"].empty();
  require(has("failure") || is_whole, file,
          " should be the output of braid bench --json: ", "a result lacks step_s or steps_s");
  if (has("failure")) return;
  for (const auto& seconds : result["steps_s"])
    require(seconds.is_number(), file, ": steps_s should be numbers, one is ", seconds.dump());
}

}  // namespace

std::vector<OrderedJson> read_results(const std::filesystem::path& file) {
  std::error_code missing;
  require(!std::filesystem::is_other(std::filesystem::status(file, missing)), "--against ",
          file.string(), " should be a file, it is a pipe or a device");
  const auto json = OrderedJson::parse(read_json(file).dump());
  std::vector<OrderedJson> results;
  if (json.is_array())
    results.assign(json.begin(), json.end());
  else
    results.push_back(json);
  for (const auto& result : results) check_result(result, file.string());
  require(!std::all_of(results.begin(), results.end(), is_failure), file.string(),
          " holds no result");
  return results;
}

void require_comparable(const OrderedJson& settings, const std::vector<OrderedJson>& before) {
  const auto match = find_same(settings, before);
  require(match.same != nullptr, match.missing);
}

Comparison compare_results(std::vector<OrderedJson>& results,
                           const std::vector<OrderedJson>& before, double tolerance) {
  Comparison comparison;
  auto timed = before;
  std::erase_if(timed, is_failure);
  for (auto& result : results) {
    if (is_failure(result)) continue;
    const auto match = find_same(result, timed);
    if (!match.same) {
      comparison.missing = match.missing;
      continue;
    }
    const auto then = match.same->at("step_s").get<double>();
    const bool is_worse = is_slower(result, *match.same, tolerance);
    result["against"] = {{"step_s", then},
                         {"ratio", result.at("step_s").get<double>() / then},
                         {"slower", is_worse}};
    comparison.slower += is_worse ? 1 : 0;
  }
  return comparison;
}

}  // namespace braid
