// What this machine can do: the rates of LibTorch's best ways, measured in the calling process.
// Each way is checked against float32 before it is timed.
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

// Queries and keys for a number of heads, all batches together.
struct AttentionShape {
  std::int64_t heads, queries, keys, width;

  double flops() const {
    return 4.0 * double(heads) * double(queries) * double(keys) * double(width);
  }
  auto operator<=>(const AttentionShape&) const = default;
};

// One way to compute something, and its least time over some runs.
struct WayTime {
  std::string way;  // "at::linear"
  double seconds;
};

class Ceilings {
 public:
  explicit Ceilings(at::Device device) : device_(device) {}

  // The type a product is computed from: kFloat, kBFloat16, kChar (8-bit codes summed in int32) or,
  // on a GPU, kFloat8_e4m3fn. Returns all ways of device and LibTorch, the fastest first; those far
  // behind it are timed only once. Throws Error if a way's answer is wrong. Measured once per
  // shape.
  const std::vector<WayTime>& product(at::ScalarType dtype, const ProductShape& shape);
  const std::vector<WayTime>& attention(at::ScalarType dtype, const AttentionShape& shape);

  // Bytes per second, read and written, of a copy too large for caches.
  double memory_speed();
  // Bytes per second that a GPU copies from locked host memory.
  double copy_speed() const;

 private:
  at::Device device_;
  std::map<std::tuple<at::ScalarType, ProductShape>, std::vector<WayTime>> products_;
  std::map<std::tuple<at::ScalarType, AttentionShape>, std::vector<WayTime>> attentions_;
  double memory_speed_ = 0;
};

}  // namespace braid
