// What does skipping evaluations cost? Pictures of the bundled model with and without a cache.
#include <chrono>
#include <cmath>
#include <cstdio>

#include "pipeline/engine/engine.h"

namespace braid {
namespace {

const std::vector<std::string> kPrompts = {
    "a red circle on a blue background", "two green stars on a black background",
    "a yellow square left of a purple triangle", "a white ring on an orange background"};

struct Run {
  std::vector<Picture> pictures;
  double full = 0;     // fraction of the steps evaluated in full
  double seconds = 0;  // from the first step to the last
};

Run run(const CacheOptions& cache) {
  using Clock = std::chrono::steady_clock;
  const Engine engine({.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo",
                       .dtype = Dtype::kFloat32,
                       .cache = cache},
                      {});
  Run result;
  Clock::time_point began;
  const Hooks hooks{.progress = [&](const Progress& p) {
    if (p.phase != Phase::kDenoise) return;
    if (p.done == 0) began = Clock::now();
    if (p.done == p.total)
      result.seconds += std::chrono::duration<double>(Clock::now() - began).count();
  }};
  const Request request{.prompts = kPrompts, .seed = 1};
  const int steps = engine.settle(request, {}).steps;
  auto [pictures, facts] = engine.generate(request, hooks);
  result.pictures = std::move(pictures);
  std::size_t full = 0;
  for (const auto& picture : facts.full_steps) full += picture.size();
  result.full =
      facts.full_steps.empty() ? 1 : double(full) / double(steps) / double(kPrompts.size());
  return result;
}

void compare(const char* name, const CacheOptions& cache, const Run& whole) {
  const auto cached = run(cache);
  double squares = 0, count = 0;
  int largest = 0;
  for (std::size_t i = 0; i < cached.pictures.size(); ++i)
    for (std::size_t k = 0; k < cached.pictures[i].rgb.size(); ++k) {
      const int off = std::abs(cached.pictures[i].rgb[k] - whole.pictures[i].rgb[k]);
      largest = std::max(largest, off);
      squares += off * off;
      count += 1;
    }
  std::printf("%-12s %9.2f %6.0f %% %7.2f x %9.1f %8d\n", name, cache.threshold, 100 * cached.full,
              whole.seconds / cached.seconds, 10 * std::log10(255 * 255 * count / squares),
              largest);
}

}  // namespace
}  // namespace braid

int main() {
  using namespace braid;
  const auto whole = run({});
  std::printf("mode         threshold   full    speed   PSNR dB  largest\n");
  for (const double threshold : {0.02, 0.05, 0.1, 0.15, 0.2, 0.3})
    compare("first-block", {.mode = CacheMode::kFirstBlock, .threshold = threshold}, whole);
  for (const double threshold : {0.05, 0.1, 0.2, 0.4})
    compare("accumulated", {.mode = CacheMode::kAccumulated, .threshold = threshold}, whole);
}
