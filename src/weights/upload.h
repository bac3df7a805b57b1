// The way of a checkpoint's numbers to a GPU while it is loaded: through two halves of locked
// memory, one filled by all threads while the other one travels.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <array>
#include <optional>

namespace braid {

class Upload {
 public:
  static constexpr std::int64_t kHalf = 32 << 20;  // bytes

  explicit Upload(at::Device device, std::int64_t half = kHalf) : device_(device), half_(half) {}
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // A tensor on the device with the same numbers, for work that the current stream is given next.
  // `host` may change once this returns.
  at::Tensor operator()(const at::Tensor& host);
  // The same into a dense tensor of `host`'s dtype.
  void copy(const at::Tensor& target, const at::Tensor& host);

 private:
  struct Half {
    at::Tensor bytes;
    std::optional<c10::Event> copied;
  };
  Half& next();

  at::Device device_;
  std::int64_t half_;
  std::array<Half, 2> halves_;  // locked when first used
  std::size_t last_ = 0;
};

// Where a tensor is built. Without an upload numbers are copied as LibTorch does.
struct Target {
  Target(at::DeviceType type) : device(type) {}
  Target(at::Device where, Upload* way = nullptr) : device(where), upload(way) {}

  at::Device device;
  Upload* upload = nullptr;
};

// `x` on the target.
at::Tensor moved(const at::Tensor& x, const Target& target);

}  // namespace braid
