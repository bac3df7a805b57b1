// The flags of `braid bench`.
#pragma once

#include "app/flag_reader.h"
#include "app/flags.h"

namespace braid {

extern const char* const kBenchExamples;

void add_bench_flags(FlagReader& read, BenchFlags& flags);

}  // namespace braid
