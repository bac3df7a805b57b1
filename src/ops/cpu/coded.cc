#include "ops/cpu/coded.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "ops/kernels/blocks.h"

namespace braid::ops {
namespace cpu {
namespace {

constexpr std::int64_t kNumbersAtOnce = 512;  // two of the largest blocks

BlockKernels::Decode* decoder_of(ElementType type) {
  const auto& kernels = block_kernels();
  if (type == ElementType::kFloat8E4M3) return kernels.e4m3;
  if (type == ElementType::kFloat8E5M2) return kernels.e5m2;
  return kernels.blocks[std::size_t(type) - std::size_t(ElementType::kQ4_0)];
}

// Calls body(place in the result, number of the row's that is wanted there, count) for the runs of
// the wanted numbers.
template <class Body>
void for_each_run(const Coding& coding, std::int64_t inputs, Range wanted, Body body) {
  const std::vector<Share> all = {{.begin = 0, .count = inputs}};
  std::int64_t at = 0;
  for (const auto& run : coding.columns.empty() ? all : coding.columns) {
    const auto begin = std::max(wanted.begin, at);
    const auto end = std::min(wanted.begin + wanted.count, at + run.count);
    if (begin < end) body(begin - wanted.begin, run.begin + begin - at, end - begin);
    at += run.count;
  }
}

}  // namespace

CodedRows::CodedRows(const Matrix& matrix)
    : coding_(matrix.coding.get()),
      inputs_(matrix.inputs()),
      bytes_(matrix.values_NC.const_data_ptr<std::uint8_t>()),
      stride_(matrix.values_NC.stride(0)),
      scales_(matrix.scales_N1.defined() ? matrix.scales_N1.const_data_ptr<float>() : nullptr) {}

template <class Number, class Scale>
void CodedRows::read(std::int64_t row, Range numbers, Number* out, Scale scale) const {
  const auto [per_block, block_bytes] = block_of(coding_->type);
  auto* const decode = decoder_of(coding_->type);
  const auto* const from = bytes_ + row * stride_;
  const float factor = scales_ ? scales_[row] : 1;
  alignas(64) float buffer[2 * kNumbersAtOnce];
  for_each_run(
      *coding_, inputs_, numbers, [&](std::int64_t place, std::int64_t first, std::int64_t count) {
        for (std::int64_t done = 0; done < count;) {
          const auto block = (first + done) / per_block, skip = first + done - block * per_block;
          const auto some = std::min(count - done, kNumbersAtOnce);
          decode(from + block * block_bytes, blocks_in(skip + some, per_block), buffer);
          scale(buffer + skip, factor, some, out + place + done);
          done += some;
        }
      });
}

void CodedRows::as_bfloat16(std::int64_t row, Range numbers, std::uint16_t* out) const {
  read(row, numbers, out, block_kernels().to_bfloat16);
}

void CodedRows::as_float32(std::int64_t row, Range numbers, float* out) const {
  read(row, numbers, out, block_kernels().to_float32);
}

}  // namespace cpu

void decode_on_cpu(const Matrix& matrix, const Tensor& out_NC) {
  const cpu::CodedRows rows(matrix);
  const auto width = out_NC.size(1);
  constexpr std::int64_t kRowsAtOnce = 16;
  at::parallel_for(0, out_NC.size(0), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row)
      if (out_NC.scalar_type() == at::kFloat)
        rows.as_float32(row, {0, width}, out_NC.mutable_data_ptr<float>() + row * width);
      else
        rows.as_bfloat16(row, {0, width},
                         static_cast<std::uint16_t*>(out_NC.mutable_data_ptr()) + row * width);
  });
}

}  // namespace braid::ops
