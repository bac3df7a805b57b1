// CUDA graphs, with the memory that LibTorch's allocator reserves for them.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include "pipeline/graphs/device_graph.h"
#include "pipeline/graphs/graph_pool.h"

namespace braid {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

class CudaPool : public GraphPool {
 public:
  explicit CudaPool(at::Device device) : device_(device.index()) {}

  c10::MempoolId_t id() const { return id_; }
  void stop() override {
    allocator::endAllocateToPool(device_, id_);
    at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(id_);
  }
  int num_holders() override { return allocator::getPoolUseCount(device_, id_); }
  void release() override { allocator::releasePool(device_, id_); }

 private:
  c10::DeviceIndex device_;
  c10::MempoolId_t id_ = at::cuda::graph_pool_handle();
};

class CudaGraph : public DeviceGraph {
 public:
  explicit CudaGraph(at::Device device) : pool_(device) {}
  ~CudaGraph() override {
    if (is_recording_) quietly([this] { graph_.capture_end(); });
    quietly([this] { graph_.reset(); });
    give_back(pool_);  // while graph_ is alive: the allocator asks it what belongs to it
  }

  // Other threads may allocate and wait meanwhile: only this one is restricted in what it may do.
  void begin() override {
    is_recording_ = true;
    graph_.capture_begin(pool_.id(), cudaStreamCaptureModeThreadLocal);
  }
  void end() override {
    is_recording_ = false;
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }

 private:
  template <class Work>
  static void quietly(Work work) noexcept {
    try {
      work();
    } catch (const std::exception&) {
      // the error has already been reported
    }
  }

  CudaPool pool_;
  at::cuda::CUDAGraph graph_;
  bool is_recording_ = false;
};

}  // namespace

// Other allocators, which PYTORCH_CUDA_ALLOC_CONF may name, cannot say who holds a graph's memory.
std::string why_no_device_graph(at::Device device) {
  if (!device.is_cuda()) return "this build records no graphs";
  const auto name = allocator::get()->name();
  return name == "native" ? "" : "LibTorch's allocator is " + name + ", not the native one";
}

std::unique_ptr<DeviceGraph> make_device_graph(at::Device device) {
  return why_no_device_graph(device).empty() ? std::make_unique<CudaGraph>(device) : nullptr;
}

}  // namespace braid
