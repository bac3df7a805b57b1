// `--layout auto`: the planner chooses how ranks share the work.
#pragma once

#include "app/flags/flag_reader.h"

namespace braid {

void add_auto_layout_flag(FlagReader& read, bool& is_auto);

// Throws InputError if degrees are given as well.
void check_auto_layout(bool is_auto, const Layout& layout);

// Fills in the degrees for `num_ranks` ranks on the options' devices; returns a sentence for people
// that names them.
std::string choose_degrees(const PipelineOptions& options, const Request& request, int num_ranks,
                           Layout& layout);

}  // namespace braid
