// The memory settings in words.
#pragma once

#include <string>

#include "braid/memory.h"
#include "pipeline/planner/memory_plan.h"

namespace braid {

std::string layers_text(const std::vector<std::string>& layers);  // as in --quantize-skip

// The flags that differ from their defaults, as typed: "--quantize int8 --offload block"; empty if
// none does.
std::string flags_of(const Memory& memory);

enum class ComputedOn { kHost, kGpus };

// A budget's choice: "--offload block --resident 12, predicted peak 5.90 GB per device, 24.31 GB on
// the host".
std::string memory_plan_sentence(const MemoryPlan& plan, ComputedOn where);

// "; it would fit with --offload-dir DIR (4.00 GB)", in flags of this command.
std::string help_sentence(const DoesNotFit& refusal, const std::string& command);

// "a smaller --size or --dtype bfloat16", in flags of this command; empty if it has none.
std::string takes_less(const std::string& command);

}  // namespace braid
