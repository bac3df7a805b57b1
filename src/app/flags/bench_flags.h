// The flags of `braid bench`.
#pragma once

#include "app/commands/sweep.h"
#include "app/flags/flag_reader.h"
#include "app/flags/flags.h"

namespace braid {

extern const char* const kBenchExamples;

// What the flags of one configuration fill in. They are read once for each.
struct BenchLine {
  BenchConfiguration configuration;
  std::vector<Sweep> sweeps;
};

void add_bench_flags(FlagReader& read, BenchLine& line, BenchFlags& flags);

// Reads the line, and for each combination of the sweeps the line that goes on with it.
// Throws InputError.
void finish_bench_flags(FlagReader& read, BenchLine& line, BenchFlags& flags);

}  // namespace braid
