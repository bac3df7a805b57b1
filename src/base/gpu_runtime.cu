// CUDA and HIP have the same calls under two names. Which of the two is the one thing tested here.
#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define BRAID_RUNTIME(name) hip##name
#else
#include <cuda_runtime.h>
#define BRAID_RUNTIME(name) cuda##name
#endif

#include "base/gpu_runtime.h"

namespace braid::gpu_runtime {
namespace {

using Code = BRAID_RUNTIME(Error_t);

// What failed here must not be found by whoever starts the next kernel.
bool went_well(Code code) {
  if (code == BRAID_RUNTIME(Success)) return true;
  (void)BRAID_RUNTIME(GetLastError)();
  return false;
}

}  // namespace

bool lock(void* data, std::size_t bytes) {
  return went_well(BRAID_RUNTIME(HostRegister)(data, bytes, BRAID_RUNTIME(HostRegisterPortable)));
}

void unlock(void* data) { (void)went_well(BRAID_RUNTIME(HostUnregister)(data)); }

std::string bus_id(int device) {
  char text[32] = "";
  return went_well(BRAID_RUNTIME(DeviceGetPCIBusId)(text, sizeof text, device)) ? text : "";
}

}  // namespace braid::gpu_runtime
