// How long does the program take from its start to the picture, and how much of it is each phase?
// The bundled model, 128x128, 20 steps. Runs the program itself: what a person waits for.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "image/png.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// The program's report, and the seconds measured from outside.
struct Run {
  std::string report;
  double seconds = 0;
  bool is_good = false;
};

Run run_program(const fs::path& picture) {
  const auto command = std::string(BRAID_PROGRAM) +
                       " generate --json -q --steps 20 --size 128x128 --seed 1 -o " +
                       picture.string() + " 'a red circle on a blue background'";
  Run run;
  const auto began = std::chrono::steady_clock::now();
  std::FILE* const out = ::popen(command.c_str(), "r");
  if (!out) return run;
  char buffer[4096];
  while (const auto size = std::fread(buffer, 1, sizeof buffer, out))
    run.report.append(buffer, size);
  run.is_good = ::pclose(out) == 0;
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return run;
}

// Red in the middle, blue in a corner.
bool is_right(const fs::path& path) {
  const auto image = decode_png(read_file(path), path.string());
  if (image.width != 128 || image.height != 128) return false;
  const auto* const middle = &image.rgb[(64 * 128 + 64) * 3];
  const auto* const corner = &image.rgb[(4 * 128 + 4) * 3];
  return middle[0] > 2 * middle[2] && corner[2] > 2 * corner[0];
}

void generate(benchmark::State& state) {
  char name[] = "/tmp/braid_bench.XXXXXX";
  const fs::path folder = ::mkdtemp(name);
  const auto picture = folder / "picture.png";
  run_program(picture);  // loads the files into memory
  for (auto _ : state) {
    const auto run = run_program(picture);
    if (!run.is_good || !is_right(picture)) {
      state.SkipWithError("the program failed");
      break;
    }
    state.SetIterationTime(run.seconds);
    const auto report = parse_json(run.report, "the program's report");
    const auto& seconds = report.at("seconds");
    for (const auto& [phase, time] : seconds.items()) state.counters[phase] = time.get<double>();
    // Time before the first line of main() and after its last: the dynamic linker, LibTorch's
    // static constructors, the end of the process.
    state.counters["outside"] = run.seconds - seconds.at("total").get<double>();
  }
  fs::remove_all(folder);
}
BENCHMARK(generate)
    ->UseManualTime()
    ->Iterations(1)
    ->Repetitions(7)
    ->Unit(benchmark::kSecond)
    ->ReportAggregatesOnly();

}  // namespace
}  // namespace braid
