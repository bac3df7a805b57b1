// Stands for the GPU runtime in builds without a GPU backend.
#include "base/gpu_runtime.h"

namespace braid::gpu_runtime {

bool lock(void*, std::size_t) { return false; }
void unlock(void*) {}
std::string bus_id(int) { return {}; }
std::string uuid(int) { return {}; }
bool is_recording(void*) { return false; }
int compute_capability(int) { return 0; }
std::string architecture(int) { return {}; }

}  // namespace braid::gpu_runtime
