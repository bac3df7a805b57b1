// What must stand in the environment before LibTorch is loaded: what the program sets itself, so
// that nobody needs to know of it. What the user has set stays.
#pragma once

#include <string>
#include <vector>

#include "app/machine/gpu_nodes.h"

namespace braid {

struct Variable {
  std::string name, value, why;
  std::vector<std::string> instead = {};  // names of variables that say the same
};

// For every machine, and for these GPUs.
std::vector<Variable> wanted_environment(const std::vector<GpuNode>& gpus);

// Sets what neither the user nor, in this process, somebody else has set, and notes it in
// BRAID_SET.
void set_environment(const std::vector<Variable>& wanted);

// Who has set the variable, for those who come after set_environment().
enum class SetBy { kNobody, kUser, kBraid };
SetBy who_set(const std::string& name);

}  // namespace braid
