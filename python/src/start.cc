// braid_engine._start: the environment that LibTorch needs before it is loaded, which this module
// does not do.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <map>
#include <string>

#include "app/machine/environment.h"

namespace braid::python {

// Sets what the user has not set; returns it.
std::map<std::string, std::string> set_this_environment() {
  const auto wanted = wanted_environment_here();
  set_environment(wanted);
  std::map<std::string, std::string> set;
  for (const auto& variable : wanted)
    if (who_set(variable.name) == SetBy::kBraid) set[variable.name] = variable.value;
  return set;
}

NB_MODULE(_start, m) { m.def("set_environment", &set_this_environment); }

}  // namespace braid::python
