// A matrix product in cache-sized blocks, on all threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace braid::ops {
struct ProductKernels;
}

namespace braid::ops::cpu {

// Numbers per cache line. Rows are padded by one line, so that they do not all start in the same
// few cache sets.
constexpr std::int64_t kLineNumbers = 16;

struct Range {
  std::int64_t begin, count;
};

// Rows of words, `stride` words apart.
template <class Word>
struct WordRows {
  const Word* words = nullptr;
  std::int64_t stride = 0;
};

// [tokens inputs] times transposed [outputs inputs], by these kernels, with float or int32 sums and
// operands in words of the same size. All functions are called by several threads at once, each for
// different parts.
template <class Word>
struct Product {
  const ProductKernels* kernels;
  std::int64_t tokens, outputs, inputs;
  // x where it is stored, if that is in words; else null, and take() converts it.
  WordRows<Word> x = {};
  std::function<void(Range tokens, Range inputs, Word* to, std::int64_t stride)> take;
  std::function<void(Range outputs, Range inputs, Word* panel)> pack;        // of the weight
  std::function<void(std::int64_t token, Range outputs, Word* sums)> begin;  // the addend
  std::function<void(std::int64_t token, Range outputs, Word* sums)> finish;
};

void run(const Product<float>& product);
void run(const Product<std::int32_t>& product);

// Uninitialised, aligned as panels and sums require.
template <class Number>
class Buffer {
 public:
  explicit Buffer(std::int64_t count)
      : data_(static_cast<Number*>(allocate(count * sizeof(Number)))) {}
  Number* at(std::int64_t i) const { return data_.get() + i; }

 private:
  static void* allocate(std::size_t bytes);  // rounded up to a multiple of 64 bytes
  struct Free {
    void operator()(Number* p) const { std::free(p); }
  };
  std::unique_ptr<Number, Free> data_;
};

inline std::int64_t blocks_in(std::int64_t length, std::int64_t block) {
  return (length + block - 1) / block;
}

inline std::int64_t round_up(std::int64_t length, std::int64_t block) {
  return blocks_in(length, block) * block;
}

}  // namespace braid::ops::cpu
