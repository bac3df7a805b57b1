// CUDA and HIP have the same calls under two names. Which of the two is the only thing tested here.
#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define BRAID_RUNTIME(name) hip##name
#else
#include <cuda_runtime.h>
#define BRAID_RUNTIME(name) cuda##name
#endif

#include <dlfcn.h>

#include "base/gpu_runtime.h"

namespace braid::gpu_runtime {
namespace {

using Code = BRAID_RUNTIME(Error_t);

// Clears a failure, so that the launch of the next kernel does not find it.
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

// The runtime's own properties may name the whole device.
std::string uuid([[maybe_unused]] int device) {
  std::string text;
#if !defined(__HIPCC__)
  using GetUuid = int (*)(unsigned char*, int);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto get =
      driver ? reinterpret_cast<GetUuid>(dlsym(driver, "cuDeviceGetUuid_v2")) : nullptr;
  unsigned char bytes[16] = {};
  if (!get || get(bytes, device) != 0) return {};
  for (const auto byte : bytes)
    for (const int digit : {byte / 16, byte % 16}) text += "0123456789abcdef"[digit];
#endif
  return text;
}

bool is_recording(void* stream) {
  auto status = BRAID_RUNTIME(StreamCaptureStatusNone);
  const auto queue = static_cast<BRAID_RUNTIME(Stream_t)>(stream);
  return went_well(BRAID_RUNTIME(StreamIsCapturing)(queue, &status)) &&
         status != BRAID_RUNTIME(StreamCaptureStatusNone);
}

int compute_capability([[maybe_unused]] int device) {
#if defined(__HIPCC__)
  return 0;
#else
  int major = 0, minor = 0;
  const bool is_known =
      went_well(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)) &&
      went_well(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return is_known ? 10 * major + minor : 0;
#endif
}

std::string architecture(int device) {
#if defined(__HIPCC__)
  hipDeviceProp_t properties;
  return went_well(hipGetDeviceProperties(&properties, device)) ? properties.gcnArchName : "";
#else
  const int capability = compute_capability(device);
  return capability > 0 ? "sm_" + std::to_string(capability) : "";
#endif
}

}  // namespace braid::gpu_runtime
