// The kernels that a thread starts on the GPUs of fake_gpu.cc: LibTorch's, one for each operation
// that is not a view, and those of ops/gpu.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <string>
#include <vector>

namespace braid::fake_gpu {

// Counts while it lives; one at a time on a thread.
class CountsKernels {
 public:
  // `bytes` that a kernel reads and writes of tokens; not of weights and of vectors that a picture
  // has one of. 0 for products, which hide them, and for attention.
  struct Started {
    std::string name;
    std::int64_t bytes;
  };

  CountsKernels();
  ~CountsKernels();
  CountsKernels(const CountsKernels&) = delete;
  CountsKernels& operator=(const CountsKernels&) = delete;

  std::size_t count() const;
  const std::vector<Started>& kernels() const;

 private:
  at::CallbackHandle handle_;
};

namespace counted {

// What the fake GPUs start; nothing without a CountsKernels.
void kernel(const std::string& name, const std::vector<at::Tensor>& moved);
// A kernel of ops/gpu, within the operation (ops/record.h) that says what it moves.
void launch();

}  // namespace counted
}  // namespace braid::fake_gpu
