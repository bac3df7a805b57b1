// CUDA's graphs, with the memory that LibTorch's allocator sets apart for them.
#include <ATen/cuda/CUDAGraph.h>

#include "pipeline/graphs/device_graph.h"

namespace braid {
namespace {

class CudaGraph : public DeviceGraph {
 public:
  // Other threads may allocate and wait meanwhile: only this one is bound to what can be recorded.
  void begin() override { graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal); }
  void end() override { graph_.capture_end(); }
  void replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph(at::Device device) {
  return device.is_cuda() ? std::make_unique<CudaGraph>() : nullptr;
}

}  // namespace braid
