// The bytes of pages, in host memory or in files.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>

namespace braid {

using at::Tensor;

class PageFile;

// The contents of one page, wherever they are. Different contents have different versions.
struct PageBytes {
  std::string name;  // of the group of layers
  std::uint64_t version = 0;
  std::int64_t size = 0;  // bytes
  Tensor memory = {};     // kByte [size] on the host; undefined for a file
  std::shared_ptr<const PageFile> file = {};
  bool is_locked = false;  // the device can copy from `memory` directly
};

// Copies the page's bytes to `target`, which has room for them. Throws Error for a damaged file.
void read_page(const PageBytes& page, std::byte* target);

// kByte memory aligned to kPageAlignment, as direct reads need. Freed with the tensor.
Tensor aligned_bytes(std::int64_t size);

std::span<std::byte> span_of(const Tensor& bytes);

}  // namespace braid
