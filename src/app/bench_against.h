// `braid bench --against FILE`: results beside those of an earlier run.
#pragma once

#include <filesystem>
#include <vector>

#include "app/readable_json.h"

namespace braid {

// The results in a file that `braid bench --json` wrote. Throws InputError.
std::vector<OrderedJson> read_results(const std::filesystem::path& file);

// Adds to each result an object "against": the earlier `step_s`, the `ratio` to it, and whether it
// is `slower`: by more than `tolerance` (0.1: a tenth), and beyond what the runs differ among
// themselves (the middle halves of both do not overlap). Returns how many are.
// Throws InputError naming what differs where `before` has no result of the same configuration.
int compare_results(std::vector<OrderedJson>& results, const std::vector<OrderedJson>& before,
                    double tolerance);

}  // namespace braid
