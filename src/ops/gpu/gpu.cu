// The kernels on a device, CUDA's or AMD's under HIP, which is the same text with other names.
// Which of the two is the only thing tested here.
#define BRAID_DEVICE __device__
#if defined(__HIPCC__)
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#pragma nv_diag_suppress 1675  // loops of weights/codes tell GCC to unroll; nvcc does so unasked
#endif

#include <stdexcept>
#include <string>

#include "ops/gpu/blocks.h"
#include "ops/gpu/codes.h"
#include "ops/gpu/heads.h"
#include "ops/gpu/sums.h"
#include "ops/gpu/tokens.h"
#include "ops/gpu/types.h"

namespace braid::ops::gpu {

#if defined(__HIPCC__)
using NativeStream = hipStream_t;
std::string failure_of_launch() {
  const auto code = hipGetLastError();
  return code == hipSuccess ? "" : hipGetErrorString(code);
}
__device__ std::uint16_t float_to_bfloat(float x) { return bfloat_by_bits(x); }
// A wave of 64 lanes is two groups with separate shuffles.
__device__ inline float shuffle(float x, int mask) { return __shfl_xor(x, mask, kLanes); }
#else
__device__ std::uint16_t float_to_bfloat(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
using NativeStream = cudaStream_t;
std::string failure_of_launch() {
  const auto code = cudaGetLastError();
  return code == cudaSuccess ? "" : cudaGetErrorString(code);
}
__device__ inline float shuffle(float x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask, kLanes);
}
#endif

__device__ float half_to_float(std::uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
__device__ std::uint16_t float_to_half(float x) { return __half_as_ushort(__float2half_rn(x)); }
__device__ float rough_exponential(float x) { return __expf(x); }
__device__ float rough_quotient(float x, float y) { return __fdividef(x, y); }

namespace {

struct DeviceBlock {
  __device__ int thread() const { return int(threadIdx.x); }
  __device__ int size() const { return int(blockDim.x); }
  __device__ std::uint32_t row() const { return blockIdx.x; }
  __device__ std::uint32_t part() const { return blockIdx.y; }
  __device__ float shuffle_xor(float x, int mask) const { return shuffle(x, mask); }
  __device__ float& shared(int i) const {
    __shared__ float cells[kLanes];
    return cells[i];
  }
  __device__ void sync() const { __syncthreads(); }
};

template <class T, int N, class Work>
__global__ void __launch_bounds__(kMostThreads<Work>) kernel(Work work) {
  DeviceBlock block;
  run<T, N>(work, block);
}

template <class Work>
void start(const Work& work, const Launch& how) {
  visit_types<Work>(how, [&](auto types) {
    using Types = decltype(types);
    const dim3 grid(unsigned(how.rows), unsigned(how.parts)), block(unsigned(how.threads));
    kernel<typename Types::Element, Types::kVector>
        <<<grid, block, 0, static_cast<NativeStream>(how.stream)>>>(work);
  });
  const auto failure = failure_of_launch();
  if (!failure.empty()) throw std::runtime_error("a kernel did not start: " + failure);
}

}  // namespace

void launch(const ModulatedNorm& work, const Launch& how) { start(work, how); }
void launch(const GatedResidual& work, const Launch& how) { start(work, how); }
void launch(const GatedResidualNorm& work, const Launch& how) { start(work, how); }
void launch(const AddParts& work, const Launch& how) { start(work, how); }
void launch(const JoinedGelu& work, const Launch& how) { start(work, how); }
void launch(const JoinedGeluCodes& work, const Launch& how) { start(work, how); }
void launch(const NormRotate& work, const Launch& how) { start(work, how); }
void launch(const QuantizeRows& work, const Launch& how) { start(work, how); }
void launch(const Widen& work, const Launch& how) { start(work, how); }
void launch(const ScaleSums& work, const Launch& how) { start(work, how); }
void launch(const DecodeRows& work, const Launch& how) { start(work, how); }
void launch(const EulerStep& work, const Launch& how) { start(work, how); }

}  // namespace braid::ops::gpu
