// `braid bench --against FILE`: results beside those of an earlier run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/print/readable_json.h"

namespace braid {

// The results in a file that `braid bench --json` wrote, and its failures. Throws InputError where
// there is no result.
std::vector<OrderedJson> read_results(const std::filesystem::path& file);

// Adds to each result an object "against": the earlier `step_s`, the `ratio` to it, and whether it
// is `slower`: by more than `tolerance` (0.1: a tenth), and beyond what the runs differ among
// themselves (the middle halves of both do not overlap).
struct Comparison {
  int slower = 0;       // how many
  std::string missing;  // what differs where `before` has no result of the same configuration
};
Comparison compare_results(std::vector<OrderedJson>& results,
                           const std::vector<OrderedJson>& before, double tolerance);

// Throws InputError unless `before` has a result, or a failure, of what bench_settings() tells.
void require_comparable(const OrderedJson& settings, const std::vector<OrderedJson>& before);

}  // namespace braid
