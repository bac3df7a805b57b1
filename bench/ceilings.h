// What this machine can do: the rates that LibTorch's best ways reach, measured in the process that
// asks. Each way is checked against float32 before it is timed.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace braid {

struct ProductShape {
  std::int64_t rows, inputs, outputs;

  double flops() const { return 2.0 * double(rows) * double(inputs) * double(outputs); }
  auto operator<=>(const ProductShape&) const = default;
};

// Queries and keys of so many heads, all batches together.
struct AttentionShape {
  std::int64_t heads, queries, keys, width;

  double flops() const {
    return 4.0 * double(heads) * double(queries) * double(keys) * double(width);
  }
  auto operator<=>(const AttentionShape&) const = default;
};

// One way to compute something, and the least of some times that it took.
struct WayTime {
  std::string way;  // "at::linear"
  double seconds;
};

class Ceilings {
 public:
  explicit Ceilings(at::Device device) : device_(device) {}

  // Numbers a product is made of: kFloat, kBFloat16, kChar, which is 8-bit codes summed in int32,
  // or of a GPU kFloat8_e4m3fn. All ways that the device and LibTorch have, the fastest first;
  // those that are far behind it are timed once only. Throws Error where a way's answer is wrong.
  // Measured once a shape.
  const std::vector<WayTime>& product(at::ScalarType dtype, const ProductShape& shape);
  const std::vector<WayTime>& attention(at::ScalarType dtype, const AttentionShape& shape);

  // Bytes a second, read and written, of a copy that no cache holds.
  double memory_speed();
  // Bytes a second that a GPU takes from locked memory of the host.
  double copy_speed() const;

 private:
  at::Device device_;
  std::map<std::tuple<at::ScalarType, ProductShape>, std::vector<WayTime>> products_;
  std::map<std::tuple<at::ScalarType, AttentionShape>, std::vector<WayTime>> attentions_;
  double memory_speed_ = 0;
};

}  // namespace braid
