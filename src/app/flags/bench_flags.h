// The flags of `braid bench`.
#pragma once

#include "app/flags/flag_reader.h"
#include "app/flags/flags.h"
#include "app/flags/sweep.h"

namespace braid {

extern const char* const kBenchExamples;

// Filled in by the flags of one configuration; the flags are read once per configuration.
struct BenchLine {
  BenchConfiguration configuration;
  std::vector<Sweep> sweeps;
};

void add_bench_flags(FlagReader& read, BenchLine& line, BenchFlags& flags);

// Reads the line, then once per combination of the sweeps, with its values appended. Throws
// InputError.
void finish_bench_flags(FlagReader& read, BenchLine& line, BenchFlags& flags);

}  // namespace braid
