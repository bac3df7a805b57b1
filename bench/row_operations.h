// The operations between matrix products at a width, each with its definition: what rows_bench
// times and instructions counts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid {

struct RowOperation {
  std::string name;    // "joined_gelu"
  std::int64_t bytes;  // read and written, without what all rows share
  std::function<at::Tensor()> kernel, definition;
};

// Their inputs are drawn for each operation. `width` is a multiple of 128, the width of a head.
struct RowShape {
  std::int64_t tokens, width;
};

const std::vector<std::string>& row_operation_names();

// Throws Error if no operation has this name.
RowOperation row_operation(const std::string& name, at::ScalarType dtype, RowShape shape);

// Whether the kernel's numbers are near the definition's.
bool is_right(const RowOperation& operation);

}  // namespace braid
