#include "app/bench_against.h"

#include <algorithm>

#include "app/readable.h"
#include "base/error.h"
#include "base/json.h"

namespace braid {
namespace {

// What must be equal for times to be comparable.
constexpr const char* kSame[] = {"model", "double", "single", "size",    "tokens", "config",
                                 "gpus",  "dtype",  "device", "machine", "threads"};

std::string shown(const OrderedJson& result, const char* key) {
  const auto it = result.find(key);
  if (it == result.end()) return "nothing";
  return it->is_string() ? in_quotes(it->get<std::string>()) : it->dump();
}

std::vector<const char*> differences(const OrderedJson& a, const OrderedJson& b) {
  std::vector<const char*> keys;
  for (const auto* const key : kSame)
    if (shown(a, key) != shown(b, key)) keys.push_back(key);
  return keys;
}

const OrderedJson& same_result(const OrderedJson& result, const std::vector<OrderedJson>& before) {
  const OrderedJson* nearest = nullptr;
  std::vector<const char*> fewest;
  for (const auto& other : before) {
    const auto different = differences(result, other);
    if (nearest && different.size() >= fewest.size()) continue;
    nearest = &other;
    fewest = different;
  }
  if (fewest.empty()) return *nearest;
  std::string list;
  for (const auto* const key : fewest)
    list += text_of(list.empty() ? "" : ", ", key, " was ", shown(*nearest, key), " and is ",
                    shown(result, key));
  throw InputError(
      text_of("--against has no result of the same configuration: in the nearest ", list));
}

// Of sorted seconds, by the nearest rank.
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
  const bool is_failure = has("failure");
  const bool is_whole = has("step_s") && result["step_s"].is_number() && has("steps_s") &&
                        result["steps_s"].is_array() && !result["steps_s"].empty();
  require(is_failure || is_whole, file, " should hold what braid bench --json wrote, it does not: ",
          "a result has no step_s or no steps_s");
  if (is_failure) return;
  for (const auto& seconds : result["steps_s"])
    require(seconds.is_number(), file, ": steps_s should be numbers, one is ", seconds.dump());
}

}  // namespace

std::vector<OrderedJson> read_results(const std::filesystem::path& file) {
  const auto json = OrderedJson::parse(read_json(file).dump());
  std::vector<OrderedJson> results;
  if (json.is_array())
    results.assign(json.begin(), json.end());
  else
    results.push_back(json);
  for (const auto& result : results) check_result(result, file.string());
  std::erase_if(results, [](const OrderedJson& result) { return result.contains("failure"); });
  require(!results.empty(), file.string(), " holds no result");
  return results;
}

int compare_results(std::vector<OrderedJson>& results, const std::vector<OrderedJson>& before,
                    double tolerance) {
  int slower = 0;
  for (auto& result : results) {
    if (result.contains("failure")) continue;
    const auto& other = same_result(result, before);
    const auto then = other.at("step_s").get<double>();
    const bool is_worse = is_slower(result, other, tolerance);
    result["against"] = {{"step_s", then},
                         {"ratio", result.at("step_s").get<double>() / then},
                         {"slower", is_worse}};
    slower += is_worse ? 1 : 0;
  }
  return slower;
}

}  // namespace braid
