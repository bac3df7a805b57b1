#include "ops/blocked_product.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "ops/products.h"

namespace braid::ops::cpu {
namespace {

// A core multiplies a block of x, of kBlockRows and kDepth words (96 KiB, in its second cache), by
// one panel of kDepth after the other (16 KiB, in its first; 32 KiB with AVX-512, in its second).
// What a task holds besides, its sums and panels, is in the shared cache; x is read once for so
// many columns.
constexpr std::int64_t kDepth = 256, kBlockRows = 96, kTaskRows = 1536, kTaskColumns = 512;

std::int64_t round_up(std::int64_t length, std::int64_t block) {
  return blocks_in(length, block) * block;
}

void multiply(const float* x, std::int64_t rows, const float* panel, std::int64_t depth,
              float* sums, std::int64_t stride) {
  product_kernels().multiply(x, kDepth, rows, panel, depth, sums, stride);
}
void multiply(const std::int32_t* x, std::int64_t rows, const std::int32_t* panel,
              std::int64_t depth, std::int32_t* sums, std::int64_t stride) {
  product_kernels().multiply_pairs(x, kDepth, rows, panel, depth, sums, stride);
}

// The memory of one thread.
template <class Word>
class Task {
 public:
  Task(const Product<Word>& p, std::int64_t most_rows, std::int64_t most_columns)
      : p_(p),
        columns_(product_kernels().columns),
        stride_(round_up(most_columns, columns_)),
        x_(most_rows * kDepth),
        panels_(stride_ * kDepth),
        sums_(most_rows * stride_) {}

  void run(Range tokens, Range outputs) {
    for (std::int64_t m = 0; m < tokens.count; ++m) p_.begin(outputs, sums_.at(m * stride_));
    const auto inputs_at_once = kDepth * p_.numbers_a_word;
    for (std::int64_t c = 0; c < p_.inputs; c += inputs_at_once)
      add(tokens, outputs, {c, std::min(inputs_at_once, p_.inputs - c)});
    for (std::int64_t m = 0; m < tokens.count; ++m)
      p_.finish(tokens.begin + m, outputs, sums_.at(m * stride_));
  }

 private:
  void add(Range tokens, Range outputs, Range inputs) {
    for (std::int64_t m = 0; m < tokens.count; ++m)
      p_.take(tokens.begin + m, inputs, x_.at(m * kDepth));
    for (std::int64_t n = 0; n < outputs.count; n += columns_)
      p_.pack({outputs.begin + n, std::min(columns_, outputs.count - n)}, inputs,
              panels_.at(n * kDepth));
    for (std::int64_t m = 0; m < tokens.count; m += kBlockRows)
      add_block({m, std::min(kBlockRows, tokens.count - m)}, outputs.count,
                blocks_in(inputs.count, p_.numbers_a_word));
  }

  void add_block(Range rows, std::int64_t columns, std::int64_t depth) {
    const auto at_once = std::int64_t(product_kernels().rows);
    for (std::int64_t n = 0; n < columns; n += columns_)
      for (auto m = rows.begin; m < rows.begin + rows.count; m += at_once)
        multiply(x_.at(m * kDepth), std::min(at_once, rows.begin + rows.count - m),
                 panels_.at(n * kDepth), depth, sums_.at(m * stride_ + n), stride_);
  }

  const Product<Word>& p_;
  std::int64_t columns_, stride_;
  Buffer<Word> x_, panels_, sums_;
};

// Each task has some rows of x and some columns; together they are all.
template <class Word>
void run_in_parts(const Product<Word>& p) {
  if (p.tokens == 0 || p.outputs == 0) return;
  const auto row_parts = blocks_in(p.tokens, kTaskRows);
  const auto rows = round_up(blocks_in(p.tokens, row_parts), product_kernels().rows);
  const auto share = blocks_in(p.outputs, at::get_num_threads());
  const auto columns = std::min(kTaskColumns, round_up(share, product_kernels().columns));
  const auto column_parts = blocks_in(p.outputs, columns);
  at::parallel_for(0, row_parts * column_parts, 1, [&](std::int64_t begin, std::int64_t end) {
    Task<Word> task(p, rows, columns);
    for (auto i = begin; i < end; ++i) {
      const auto m = i % row_parts * rows, n = i / row_parts * columns;
      if (m < p.tokens)
        task.run({m, std::min(rows, p.tokens - m)}, {n, std::min(columns, p.outputs - n)});
    }
  });
}

}  // namespace

void run(const Product<float>& product) { run_in_parts(product); }
void run(const Product<std::int32_t>& product) { run_in_parts(product); }

template <class Number>
void* Buffer<Number>::allocate(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  void* const data =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (!data) throw std::bad_alloc();
  return data;
}
template class Buffer<float>;
template class Buffer<std::int32_t>;

}  // namespace braid::ops::cpu
