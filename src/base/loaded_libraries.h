// Which libraries a process has loaded. Two copies of one that keeps a state, such as a GPU's
// runtime, do not know each other's devices, streams and memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid {

// The files of loaded libraries whose names begin with `name`, each once: "libcudart" finds
// /usr/lib/libcudart.so.13 and libcudart-1234.so.13.
std::vector<std::string> loaded_libraries(std::string_view name);

// A sentence if there is more than one runtime of CUDA or of HIP; otherwise empty.
std::string why_runtimes_clash();

}  // namespace braid
