#include "weights/scratch.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace braid {
namespace {

// Memory of the system's, not of malloc's, which would keep what is outgrown as a hole that the
// next tensors do not fit in: 0.2 GB for FLUX.1 in float32.
at::Tensor own_bytes(std::int64_t size) {
  const auto length = std::size_t(std::max<std::int64_t>(size, 1));
  void* const data = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                            /*fd=*/-1, /*offset=*/0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  // page faults every 4 KiB of a large tensor would take longer than filling it
  (void)::madvise(data, length, MADV_HUGEPAGE);
  return at::from_blob(
      data, {size}, [length](void* memory) { ::munmap(memory, length); },
      at::TensorOptions(at::kByte));
}

}  // namespace

at::Tensor Scratch::take(at::IntArrayRef shape, at::ScalarType dtype, at::Device device) {
  const auto size = c10::multiply_integers(shape) * std::int64_t(c10::elementSize(dtype));
  if (!bytes_.defined() || bytes_.numel() < size || bytes_.device() != device) {
    bytes_ = at::Tensor();  // freed first, so that both never coexist
    bytes_ = device.is_cpu() ? own_bytes(size)
                             : at::empty({size}, at::TensorOptions(at::kByte).device(device));
  }
  return bytes_.narrow(0, 0, size).view(dtype).view(shape);
}

}  // namespace braid
