#include "ops/cpu/blocked_product.h"

#include <ATen/Parallel.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

#include "ops/kernels/products.h"

namespace braid::ops::cpu {
namespace {

// A core multiplies a block of x, `depth` words per row, by one panel of that depth after another.
// The panel stays in its L1 cache and the block in L2; with tiles, so do the block's sums. The
// panels of kPackedDepth words and a task's sums stay in L2 or the shared cache. x is read once per
// kTaskColumns columns, the weight once per kTaskRows rows.
constexpr std::int64_t kPackedDepth = 512, kTaskRows = 2304, kTaskColumns = 512;

void multiply(const ProductKernels& k, WordRows<float> x, std::int64_t rows, const float* panel,
              std::int64_t depth, float* sums, std::int64_t stride) {
  k.multiply_halves(x.words, x.stride, rows, panel, depth, sums, stride);
}
void multiply(const ProductKernels& k, WordRows<std::int32_t> x, std::int64_t rows,
              const std::int32_t* panel, std::int64_t depth, std::int32_t* sums,
              std::int64_t stride) {
  k.multiply_codes(x.words, x.stride, rows, panel, depth, sums, stride);
}

int numbers_per_word(const Product<float>& p) { return p.kernels->halves_per_word; }
int numbers_per_word(const Product<std::int32_t>& p) { return p.kernels->codes_per_word; }

// One thread's memory.
template <class Word>
class ProductTask {
 public:
  ProductTask(const Product<Word>& p, std::int64_t most_rows, std::int64_t most_columns)
      : p_(p),
        k_(*p.kernels),
        columns_(k_.columns),
        stride_(round_up(most_columns, columns_)),
        sums_stride_(stride_ + kLineNumbers),
        x_(p.x.words ? 0 : std::min<std::int64_t>(most_rows, k_.block_rows) * k_.depth),
        panels_(stride_ * round_up(std::min(kPackedDepth, words_of(p.inputs)), k_.depth)),
        sums_(most_rows * sums_stride_) {}

  void run(Range tokens, Range outputs) {
    for (std::int64_t m = 0; m < tokens.count; ++m)
      p_.begin(tokens.begin + m, outputs, sums_.at(m * sums_stride_));
    for_each_part({0, p_.inputs}, kPackedDepth, [&](std::int64_t, Range inputs) {
      pack(outputs, inputs);
      for (std::int64_t m = 0; m < tokens.count; m += k_.block_rows)
        add(tokens, {m, std::min<std::int64_t>(k_.block_rows, tokens.count - m)}, outputs.count,
            inputs);
    });
    for (std::int64_t m = 0; m < tokens.count; ++m)
      p_.finish(tokens.begin + m, outputs, sums_.at(m * sums_stride_));
  }

 private:
  std::int64_t words_of(std::int64_t numbers) const {
    return blocks_in(numbers, numbers_per_word(p_));
  }

  // Calls body(part index, part) for each `words` words of the inputs.
  template <class Body>
  void for_each_part(Range inputs, std::int64_t words, Body body) const {
    const auto numbers = words * numbers_per_word(p_);
    for (std::int64_t i = 0; i * numbers < inputs.count; ++i)
      body(i, Range{inputs.begin + i * numbers, std::min(numbers, inputs.count - i * numbers)});
  }

  Word* panel_at(std::int64_t part, std::int64_t column) const {
    return panels_.at((part * stride_ + column) * k_.depth);
  }

  // Reads rows of the weight from end to end.
  void pack(Range outputs, Range inputs) {
    for (std::int64_t n = 0; n < outputs.count; n += columns_)
      for_each_part(inputs, k_.depth, [&](std::int64_t part, Range some) {
        p_.pack({outputs.begin + n, std::min(columns_, outputs.count - n)}, some,
                panel_at(part, n));
      });
  }

  WordRows<Word> rows_of_x(Range tokens, Range inputs) const {
    const auto& [words, stride] = p_.x;
    if (words) return {words + tokens.begin * stride + inputs.begin / numbers_per_word(p_), stride};
    p_.take(tokens, inputs, x_.at(0), k_.depth);
    return {x_.at(0), k_.depth};
  }

  // Multiplies `rows` of the task's tokens.
  void add(Range tokens, Range rows, std::int64_t columns, Range inputs) {
    for_each_part(inputs, k_.depth, [&](std::int64_t part, Range some) {
      const auto x = rows_of_x({tokens.begin + rows.begin, rows.count}, some);
      for (std::int64_t n = 0; n < columns; n += columns_)
        for (std::int64_t m = 0; m < rows.count; m += k_.rows)
          multiply(k_, {x.words + m * x.stride, x.stride},
                   std::min<std::int64_t>(k_.rows, rows.count - m), panel_at(part, n),
                   words_of(some.count), sums_.at((rows.begin + m) * sums_stride_ + n),
                   sums_stride_);
    });
  }

  const Product<Word>& p_;
  const ProductKernels& k_;
  std::int64_t columns_, stride_, sums_stride_;
  Buffer<Word> x_, panels_, sums_;
};

struct Parts {
  std::int64_t rows, columns;
};

// The partition with the least work for the busiest thread. A task packs each of its columns once,
// which costs as much as kPack rows of the product, and takes each of its rows of x once, as kTake
// columns, unless x is stored in words.
template <class Word>
Parts parts_of(const Product<Word>& p) {
  constexpr std::int64_t kTake = 96, kPack = 96;
  const std::int64_t take = p.x.words ? 0 : kTake, threads = at::get_num_threads();
  const auto tokens = p.tokens, outputs = p.outputs;
  const auto& k = *p.kernels;
  const auto few_rows = blocks_in(tokens, kTaskRows),
             few_columns = blocks_in(outputs, kTaskColumns);
  const auto most_rows = std::min(blocks_in(tokens, k.rows), few_rows + threads);
  const auto most_columns = std::min(blocks_in(outputs, k.columns), 2 * few_columns + threads);
  Parts best{};
  auto least = std::numeric_limits<std::int64_t>::max();
  for (auto r = few_rows; r <= std::max(few_rows, most_rows); ++r)
    for (auto c = few_columns; c <= std::max(few_columns, most_columns); ++c) {
      const Parts parts{.rows = round_up(blocks_in(tokens, r), k.rows),
                        .columns = round_up(blocks_in(outputs, c), k.columns)};
      const auto work = parts.rows * (parts.columns + take) + parts.columns * kPack;
      if (const auto all = blocks_in(r * c, threads) * work; all < least) {
        least = all;
        best = parts;
      }
    }
  return best;
}

// Each task computes some rows and some columns of the product.
template <class Word>
void run_in_parts(const Product<Word>& p) {
  if (p.tokens == 0 || p.outputs == 0) return;
  const auto [rows, columns] = parts_of(p);
  const auto row_parts = blocks_in(p.tokens, rows), column_parts = blocks_in(p.outputs, columns);
  // Threads take the next task as they finish one: other work may share their cores.
  const auto tasks = row_parts * column_parts;
  std::atomic<std::int64_t> next = 0;
  at::parallel_for(0, std::min<std::int64_t>(tasks, at::get_num_threads()), 1, [&](auto, auto) {
    ProductTask<Word> task(p, rows, columns);
    for (auto i = next++; i < tasks; i = next++) {
      const auto m = i % row_parts * rows, n = i / row_parts * columns;
      task.run({m, std::min(rows, p.tokens - m)}, {n, std::min(columns, p.outputs - n)});
    }
  });
}

}  // namespace

void run(const Product<float>& product) { run_in_parts(product); }
void run(const Product<std::int32_t>& product) { run_in_parts(product); }

template <class Number>
void* Buffer<Number>::allocate(std::size_t bytes) {
  constexpr std::size_t kLine = 64, kHugePage = std::size_t(1) << 21;
  const auto alignment = bytes < 2 * kHugePage ? kLine : kHugePage;
  bytes = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  void* const data = std::aligned_alloc(alignment, bytes);
  if (!data) throw std::bad_alloc();
  // page faults every 4 KiB of a large buffer would take longer than filling it
  if (alignment == kHugePage) (void)::madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}
template class Buffer<float>;
template class Buffer<std::int32_t>;

}  // namespace braid::ops::cpu
