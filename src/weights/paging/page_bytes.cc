#include "weights/paging/page_bytes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "weights/paging/page_file.h"
#include "weights/paging/page_layout.h"

namespace braid {

Tensor aligned_bytes(std::int64_t size) {
  const auto rounded = std::max(round_up(size, kPageAlignment), kPageAlignment);
  void* const memory = std::aligned_alloc(std::size_t(kPageAlignment), std::size_t(rounded));
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
