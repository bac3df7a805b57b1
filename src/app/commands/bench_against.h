// `braid bench --against FILE`: compares results with those of an earlier run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/print/readable_json.h"

namespace braid {

// The results, failures included, in a file written by `braid bench --json`. Throws InputError if
// it has no result.
std::vector<OrderedJson> read_results(const std::filesystem::path& file);

// Adds an object "against" to each result: the earlier `step_s`, the `ratio` to it, and whether it
// is `slower`: by more than `tolerance` (0.1: a tenth), and beyond the spread of the runs (the
// middle halves of both do not overlap).
struct Comparison {
  int slower = 0;       // number of slower results
  std::string missing;  // what differs, if `before` has no result of the same configuration
};
Comparison compare_results(std::vector<OrderedJson>& results,
                           const std::vector<OrderedJson>& before, double tolerance);

// Throws InputError unless `before` has a result, or a failure, for these bench_settings().
void require_comparable(const OrderedJson& settings, const std::vector<OrderedJson>& before);

}  // namespace braid
