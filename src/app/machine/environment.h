// The environment that LibTorch needs before it is loaded: the program sets it, so that users need
// not know about it. Variables set by the user stay.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/gpu_nodes.h"

namespace braid {

struct Variable {
  std::string name, value, why;
  std::vector<std::string> instead = {};  // names of equivalent variables
};

// The variables for every machine, and for these GPUs. `cpus`: see ControlGroup.
std::vector<Variable> wanted_environment(const std::vector<GpuNode>& gpus,
                                         std::optional<double> cpus);
// Those for this machine's GPUs, and for this process's control group.
std::vector<Variable> wanted_environment_here();

// Sets the variables that neither the user nor something else in this process has set, and notes
// them in BRAID_SET.
void set_environment(const std::vector<Variable>& wanted);

// Who set a variable, for callers after set_environment().
enum class SetBy { kNobody, kUser, kBraid };
SetBy who_set(const std::string& name);

}  // namespace braid
