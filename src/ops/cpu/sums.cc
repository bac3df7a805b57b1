// Sums over devices on a CPU. Compiled without fused multiply-adds, so that processors, and the
// GPU's kernel, compute the same bits.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "ops/cpu/cpu.h"

namespace braid::ops::cpu {
namespace {

constexpr std::int64_t kGrain = 16'384;  // elements worth a thread
constexpr std::int64_t kAtOnce = 512;    // elements that are summed in a buffer

float wide(float x) { return x; }
float wide(at::BFloat16 x) { return x; }

// The row of a token, or of a gate.
template <class T>
const T* row_of(const Tensor& x_BLC, std::int64_t batch, std::int64_t token) {
  const auto b = x_BLC.size(0) == 1 ? 0 : batch * x_BLC.stride(0);
  return x_BLC.const_data_ptr<T>() + b + token * x_BLC.stride(1);
}

// `count` elements of one row, the first of which is number `done` of the run.
template <class T>
class RowOfSum {
 public:
  RowOfSum(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
           const Tensor& out)
      : end_(end), run_(run), out_(out.mutable_data_ptr<T>()) {
    for (const auto& part : parts) parts_.push_back(part.const_data_ptr<T>());
    if (end.bias_C) bias_ = end.bias_C->contiguous();
  }

  void operator()(std::int64_t done, std::int64_t count) const {
    const auto element = run_.begin + done;
    const auto row = element / run_.width, column = element % run_.width;
    float sum[kAtOnce];
    for (std::int64_t i = 0; i < count; ++i) sum[i] = wide(parts_.front()[done + i]);
    for (std::size_t p = 1; p < parts_.size(); ++p)
      for (std::int64_t i = 0; i < count; ++i) sum[i] += wide(parts_[p][done + i]);
    if (bias_.defined()) {
      const auto* const bias = bias_.const_data_ptr<T>() + column;
      for (std::int64_t i = 0; i < count; ++i) sum[i] += wide(bias[i]);
    }
    if (end_.residual_BLC.defined()) {
      const auto batch = row / run_.tokens;
      const auto* const residual =
          row_of<T>(end_.residual_BLC, batch, row - batch * run_.tokens) + column;
      const auto* const gate = row_of<T>(end_.gate_B1C, batch, 0) + column;
      for (std::int64_t i = 0; i < count; ++i) sum[i] = wide(residual[i]) + wide(gate[i]) * sum[i];
    }
    for (std::int64_t i = 0; i < count; ++i) out_[done + i] = T(sum[i]);
  }

 private:
  const SumEnd& end_;
  const ElementRun& run_;
  T* out_;
  std::vector<const T*> parts_;
  Tensor bias_;
};

template <class T>
void add(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
         const Tensor& out) {
  const RowOfSum<T> row(parts, end, run, out);
  at::parallel_for(0, out.numel(), kGrain, [&](std::int64_t begin, std::int64_t stop) {
    while (begin < stop) {
      const auto left_of_row = run.width - (run.begin + begin) % run.width;
      const auto count = std::min({stop - begin, left_of_row, kAtOnce});
      row(begin, count);
      begin += count;
    }
  });
}

}  // namespace

void add_parts(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
               const Tensor& out) {
  out.scalar_type() == at::kFloat ? add<float>(parts, end, run, out)
                                  : add<at::BFloat16>(parts, end, run, out);
}

}  // namespace braid::ops::cpu
