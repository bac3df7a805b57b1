#include "ops/cpu/packed.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "ops/kernels/blocks.h"
#include "ops/kernels/codes.h"

namespace braid::ops {
namespace cpu {
namespace {

constexpr std::int64_t kLargestBlock = 256;

const auto& loops_to(const float*) { return block_kernels().to_float32; }
const auto& loops_to(const std::uint16_t*) { return block_kernels().to_bfloat16; }

RowType type_of(const float*) { return RowType::kFloat32; }
RowType type_of(const std::uint16_t*) { return RowType::kBfloat16; }

template <class Number>
BlockKernels::Decode<Number>* decoder_of(ElementType type, const Number* out) {
  const auto& loops = loops_to(out);
  if (type == ElementType::kFloat8E4M3) return loops.e4m3;
  if (type == ElementType::kFloat8E5M2) return loops.e5m2;
  return loops.blocks[std::size_t(type) - std::size_t(ElementType::kQ4_0)];
}

template <class Number>
struct StoredRow {
  BlockKernels::Decode<Number>* decode;
  Block block;
  const std::uint8_t* bytes;
  float scale;

  // Decodes whole blocks in place, and parts of a block through a buffer.
  void read(Range numbers, Number* out) const {
    const auto end = numbers.begin + numbers.count;
    for (auto at = numbers.begin; at < end;) {
      const auto skip = at % block.numbers;
      const auto whole = skip == 0 ? (end - at) / block.numbers : 0;
      const auto some =
          whole > 0 ? whole * block.numbers : std::min(end - at, block.numbers - skip);
      const auto* const from = bytes + at / block.numbers * block.bytes;
      if (whole > 0) {
        decode(from, whole, scale, out);
      } else {
        Number one[kLargestBlock];
        decode(from, 1, scale, one);
        std::copy_n(one + skip, some, out);
      }
      at += some;
      out += some;
    }
  }
};

// Codes of numbers that were rotated in groups.
template <class Number>
struct RotatedCodes {
  const CodeKernels& kernels;
  std::int64_t together;
  const std::int8_t* codes;
  float scale;

  // Decodes whole groups in place, and parts of a group through a buffer.
  void read(Range numbers, Number* out) const {
    thread_local std::vector<float> memory;
    thread_local std::vector<Number> one;
    memory.resize(std::size_t(together));
    const auto decode = [&](std::int64_t at, std::int64_t count, Number* to) {
      kernels.widen_rotated(codes + at, scale,
                            {.count = count, .together = together, .numbers = memory.data()}, to);
    };
    const auto end = numbers.begin + numbers.count;
    for (auto at = numbers.begin; at < end;) {
      const auto skip = at % together;
      const auto whole = skip == 0 ? (end - at) / together * together : 0;
      const auto some = whole > 0 ? whole : std::min(end - at, together - skip);
      if (whole > 0) {
        decode(at, whole, out);
      } else {
        one.resize(std::size_t(together));
        decode(at - skip, together, one.data());
        std::copy_n(one.data() + skip, some, out);
      }
      at += some;
      out += some;
    }
  }
};

// Reads the wanted numbers of a row that keeps only `columns`; if empty, all columns.
template <class Number, class Row>
void read_runs(const std::vector<Share>& columns, Range wanted, const Row& row, Number* out) {
  if (columns.empty()) return row.read(wanted, out);
  std::int64_t at = 0;
  for (const auto& run : columns) {
    const auto begin = std::max(wanted.begin, at);
    const auto end = std::min(wanted.begin + wanted.count, at + run.count);
    if (begin < end) row.read({run.begin + begin - at, end - begin}, out + begin - wanted.begin);
    at += run.count;
  }
}

}  // namespace

CodedRows::CodedRows(const Matrix& matrix)
    : coding_(matrix.coding.get()),
      bytes_(matrix.values_NC.const_data_ptr<std::uint8_t>()),
      stride_(matrix.values_NC.stride(0)),
      scales_(matrix.scales_N1.defined() ? matrix.scales_N1.const_data_ptr<float>() : nullptr) {}

template <class Number>
void CodedRows::read(std::int64_t row, Range numbers, Number* out) const {
  if (coding_->rotated_together > 0)
    return read_runs(
        coding_->columns, numbers,
        RotatedCodes<Number>{.kernels = code_kernels(type_of(out)),
                             .together = coding_->rotated_together,
                             .codes = reinterpret_cast<const std::int8_t*>(bytes_ + row * stride_),
                             .scale = scales_[row]},
        out);
  read_runs(coding_->columns, numbers,
            StoredRow<Number>{.decode = decoder_of(coding_->type, out),
                              .block = block_of(coding_->type),
                              .bytes = bytes_ + row * stride_,
                              .scale = scales_ ? scales_[row] : 1},
            out);
}

void CodedRows::as_bfloat16(std::int64_t row, Range numbers, std::uint16_t* out) const {
  read(row, numbers, out);
}

void CodedRows::prefetch(std::int64_t row, Range numbers) const {
  const auto [per_block, block_bytes] = block_of(coding_->type);
  const auto at = [&](std::int64_t number) { return number / per_block * block_bytes; };
  const auto* const from = bytes_ + row * stride_;
  const auto end = std::min(stride_, at(numbers.begin + numbers.count) + block_bytes);
  for (auto i = at(numbers.begin); i < end; i += 64) __builtin_prefetch(from + i);
}

void CodedRows::as_float32(std::int64_t row, Range numbers, float* out) const {
  read(row, numbers, out);
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
