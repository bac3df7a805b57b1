// The flags that say which model computes, and on what.
#pragma once

#include "app/flag_reader.h"
#include "braid/braid.h"

namespace braid {

void add_model_flags(FlagReader& read, PipelineOptions& options);
void add_machine_flags(FlagReader& read, PipelineOptions& options);
// --synthetic, --double and --single: random weights of true shapes instead of a model's files.
void add_synthetic_flags(FlagReader& read, std::string& synthetic, int& num_double,
                         int& num_single);

}  // namespace braid
