// --devices: one device a rank.
#pragma once

#include "app/flag_reader.h"

namespace braid {

void add_devices_flag(FlagReader& read, PipelineOptions& options);
void add_graph_flag(FlagReader& read, PipelineOptions& options);

}  // namespace braid
