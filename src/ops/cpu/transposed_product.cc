#include "ops/cpu/transposed_product.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "ops/kernels/products.h"

namespace braid::ops::cpu {
namespace {

// A task's sums, a block of the weight and a panel of x stay in the L2 cache while the task goes
// through all inputs. At most kMostTokens tokens are packed at a time, which bounds their memory.
constexpr std::int64_t kMostTokens = 768, kFewestRows = 64, kTasksPerThread = 4;

template <class Word>
using Multiply = void (*)(const Word*, std::int64_t, std::int64_t, const Word*, std::int64_t, Word*,
                          std::int64_t);
Multiply<float> multiply_of(const ProductKernels& k, float) { return k.multiply_halves; }
Multiply<std::int32_t> multiply_of(const ProductKernels& k, std::int32_t) {
  return k.multiply_codes;
}
int per_word(const ProductKernels& k, float) { return k.halves_per_word; }
int per_word(const ProductKernels& k, std::int32_t) { return k.codes_per_word; }

template <class Word>
class Transposed {
 public:
  explicit Transposed(const TransposedProduct<Word>& p)
      : p_(p),
        k_(*p.kernels),
        words_(round_up(blocks_in(p.inputs, per_word(k_, Word())), ProductKernels::kRun)),
        tokens_(round_up(blocks_in(p.tokens, blocks_in(p.tokens, kMostTokens)), k_.columns)),
        rows_(rows_of_task(p)),
        panels_(tokens_ * words_) {}

  void run() {
    for (std::int64_t m = 0; m < p_.tokens; m += tokens_)
      run({m, std::min(tokens_, p_.tokens - m)});
  }

 private:
  // One thread's memory.
  struct Memory {
    Buffer<Word> rows, sums, finished;
    explicit Memory(const Transposed& t)
        : rows(t.rows_ * t.depth_stride()),
          sums(t.rows_ * t.tokens_),
          finished(kTurnedAtOnce * t.finished_stride()) {}
  };
  static constexpr std::int64_t kTurnedAtOnce = ProductKernels::kTurned;

  std::int64_t depth_stride() const { return k_.depth + kLineNumbers; }
  std::int64_t finished_stride() const { return rows_ + kLineNumbers; }
  std::int64_t depth_at(std::int64_t word) const {
    return std::min<std::int64_t>(k_.depth, words_ - word);
  }
  // Panels of the same words are consecutive, in reading order.
  Word* panel_at(std::int64_t token, std::int64_t word) const {
    return panels_.at(word * tokens_ + token * depth_at(word));
  }
  // The sums of a panel are one block of memory, spanning few pages.
  Word* sums_at(std::int64_t token, const Memory& memory) const {
    const auto column = token % k_.columns;
    return memory.sums.at((token - column) * rows_ + column);
  }

  static std::int64_t rows_of_task(const TransposedProduct<Word>& p) {
    const auto tasks = kTasksPerThread * at::get_num_threads();
    std::int64_t rows = p.kernels->block_rows;
    while (rows > kFewestRows && blocks_in(p.outputs, rows) < tasks) rows /= 2;
    return rows;
  }

  void run(Range tokens) {
    const std::int64_t columns = k_.columns;
    at::parallel_for(0, blocks_in(tokens.count, columns), 1, [&](auto begin, auto end) {
      for (auto m = begin * columns; m < std::min(end * columns, tokens.count); m += columns)
        pack({tokens.begin + m, std::min(columns, tokens.count - m)}, m);
    });
    // Threads take tasks as they finish: other work may share their cores.
    std::atomic<std::int64_t> next = 0;
    at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
      Memory memory(*this);
      for (auto n = rows_ * next++; n < p_.outputs; n = rows_ * next++)
        run_task(tokens, {n, std::min(rows_, p_.outputs - n)}, memory);
    });
  }

  // The inputs that the words from `word` on hold.
  Range inputs_at(std::int64_t word) const {
    const std::int64_t first = word * per_word(k_, Word());
    return {first, std::min<std::int64_t>(k_.depth * per_word(k_, Word()), p_.inputs - first)};
  }

  // `at`: position among the tokens packed together.
  void pack(Range tokens, std::int64_t at) const {
    for (std::int64_t word = 0; word < words_; word += k_.depth)
      p_.pack(tokens, inputs_at(word), panel_at(at, word));
  }

  void run_task(Range tokens, Range outputs, Memory& memory) const {
    for (std::int64_t m = 0; m < tokens.count; m += k_.columns)
      for (std::int64_t n = 0; n < outputs.count; ++n)
        std::fill_n(sums_at(m, memory) + n * k_.columns, k_.columns,
                    p_.first ? p_.first[outputs.begin + n] : Word());
    for (std::int64_t word = 0; word < words_; word += k_.depth) {
      p_.take(outputs, inputs_at(word), memory.rows.at(0), depth_stride());
      for (std::int64_t m = 0; m < tokens.count; m += k_.columns)
        multiply_of(k_, Word())(memory.rows.at(0), depth_stride(), outputs.count, panel_at(m, word),
                                depth_at(word), sums_at(m, memory), k_.columns);
    }
    finish(tokens, outputs, memory);
  }

  void finish(Range tokens, Range outputs, Memory& memory) const {
    for (std::int64_t m = 0; m < tokens.count; m += kTurnedAtOnce) {
      k_.turn(sums_at(m, memory), k_.columns, outputs.count, memory.finished.at(0),
              finished_stride());
      for (std::int64_t i = 0; i < std::min(kTurnedAtOnce, tokens.count - m); ++i)
        p_.finish(tokens.begin + m + i, outputs, memory.finished.at(i * finished_stride()));
    }
  }

  const TransposedProduct<Word>& p_;
  const ProductKernels& k_;
  std::int64_t words_, tokens_, rows_;  // per row of x; per task
  Buffer<Word> panels_;
};

}  // namespace

void run(const TransposedProduct<float>& product) {
  if (product.tokens > 0) Transposed<float>(product).run();
}
void run(const TransposedProduct<std::int32_t>& product) {
  if (product.tokens > 0) Transposed<std::int32_t>(product).run();
}

}  // namespace braid::ops::cpu
