// What does sharing cost? Two ranks with one thread each, against one rank with two threads, on the
// same work: FLUX.1's width, 2 double and 4 single blocks, 512x512, bfloat16, random weights.
// Layouts alternate, so that other load on the machine affects all of them.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "pipeline/proofs/bench.h"

namespace {

constexpr int kRounds = 3, kThreads = 2;

struct Entry {
  const char* name;
  braid::Layout layout;
  std::vector<double> seconds = {};
  std::int64_t bytes = 0;
};

braid::BenchResult measure(const braid::Layout& layout) {
  braid::DeployOptions model{.synthetic = "flux1-dev", .blocks = {2, 4}};
  model.pipeline.threads = kThreads;
  model.pipeline.dtype = braid::Dtype::kBfloat16;
  model.pipeline.layout = layout;
  return braid::bench(braid::deploy(model), {.probe = {.width = 512, .height = 512}, .runs = 2});
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  std::vector<Entry> entries = {{"one rank", {}},
                                {"tp 2", {.tp = 2}},
                                {"ulysses 2", {.ulysses = 2}},
                                {"ring 2", {.ring = 2}}};
  for (int round = 0; round < kRounds; ++round)
    for (auto& entry : entries) {
      const auto result = measure(entry.layout);
      const auto& seconds = result.slowest().seconds;
      entry.seconds.insert(entry.seconds.end(), seconds.begin(), seconds.end());
      entry.bytes = 0;
      for (const auto& axis : result.traffic) entry.bytes += axis.traffic.bytes;
    }
  const double one = median(entries.front().seconds);
  std::printf("%-12s %12s %14s %22s\n", "layout", "s a step", "to one rank",
              "MB a rank gives a step");
  for (const auto& entry : entries)
    std::printf("%-12s %12.2f %13.0f%% %22.1f\n", entry.name, median(entry.seconds),
                100 * (median(entry.seconds) / one - 1), double(entry.bytes) / 1e6);
}
