#include "weights/paging/locked_memory.h"

#include <ATen/ATen.h>

#include "base/gpu_runtime.h"

namespace braid {

std::optional<at::Tensor> locked(const at::Tensor& bytes) {
  void* const data = bytes.mutable_data_ptr();
  if (!gpu_runtime::lock(data, std::size_t(bytes.numel()) * bytes.element_size())) return {};
  const auto unlock = [bytes](void* memory) { gpu_runtime::unlock(memory); };
  return at::from_blob(data, bytes.sizes(), unlock, bytes.options());
}

}  // namespace braid
