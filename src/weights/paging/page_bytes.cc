#include "weights/paging/page_bytes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "weights/paging/page_file.h"

namespace braid {

Tensor aligned_bytes(std::int64_t size) {
  constexpr std::size_t kAlignment = 4096;
  const auto rounded = (std::size_t(size) + kAlignment - 1) / kAlignment * kAlignment;
  void* const memory = std::aligned_alloc(kAlignment, std::max(rounded, kAlignment));
  check(memory != nullptr, "there is no memory for a page of ", size, " bytes");
  return at::from_blob(
      memory, {size}, [](void* data) { std::free(data); }, at::TensorOptions(at::kByte));
}

std::span<std::byte> span_of(const Tensor& bytes) {
  return {static_cast<std::byte*>(bytes.mutable_data_ptr()), std::size_t(bytes.numel())};
}

void read_page(const PageBytes& page, std::byte* target) {
  if (page.file) return page.file->read({target, std::size_t(page.size)});
  std::memcpy(target, page.memory.const_data_ptr(), std::size_t(page.size));
}

}  // namespace braid
