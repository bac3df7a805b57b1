#include "ops/cpu/tiled_convolution.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

#include "base/error.h"

namespace braid::ops::cpu {
namespace {

constexpr std::int64_t kTaps = 9, kRun = ProductKernels::kRun;
// kChunkWords words of a panel's pixels, over three rows, stay in the L1 cache. The taps of a
// task's outputs for these words, and its sums, stay in L2.
constexpr std::int64_t kChunkWords = 64, kTaskPanels = 16;

std::uint32_t pair(std::uint16_t low, std::uint16_t high) {
  return std::uint32_t(low) | std::uint32_t(high) << 16;
}

// The pointers' targets are apart: compilers make vectors of it.
void pair_each(const std::uint16_t* __restrict low, const std::uint16_t* __restrict high,
               std::int64_t count, std::uint32_t* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = pair(low[i], high[i]);
}

}  // namespace

// Pairs [H words W]; rows of pixels are `stride` apart.
struct TiledConvolution::Image {
  std::int64_t rows, columns, stride;
  float* pairs;
  std::int64_t words;

  float* row(std::int64_t h) const { return pairs + h * words * stride; }
};

// Panels of pixels, numbered row by row, and some outputs.
struct TiledConvolution::Task {
  Range panels, outputs;
};

bool TiledConvolution::pays(at::IntArrayRef weight, const ProductKernels& k) {
  return k.multiply_gathered && weight[2] == 3 && weight[3] == 3;
}

TiledConvolution::TiledConvolution(const Tensor& weight, const ProductKernels& kernels)
    : kernels_(kernels),
      outputs_(weight.size(0)),
      inputs_(weight.size(1)),
      words_(round_up(blocks_in(inputs_, 2), kRun)),
      taps_(blocks_in(words_, kChunkWords) * outputs_ * (kTaps * kChunkWords + kLineNumbers)) {
  enter_taps(weight.contiguous());
}

std::int64_t TiledConvolution::chunk_words(std::int64_t word) const {
  return std::min(kChunkWords, words_ - word);
}

float* TiledConvolution::taps_at(std::int64_t word, std::int64_t output) const {
  const auto chunk = word / kChunkWords;
  return taps_.at((chunk * outputs_ + output) * (kTaps * kChunkWords + kLineNumbers));
}

void TiledConvolution::enter_taps(const Tensor& weight_OI33) const {
  const auto* const weight = static_cast<const std::uint16_t*>(weight_OI33.const_data_ptr());
  at::parallel_for(0, outputs_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto o = begin; o < end; ++o) {
      const auto number = [&](std::int64_t i, std::int64_t tap) {
        return i < inputs_ ? weight[(o * inputs_ + i) * kTaps + tap] : std::uint16_t(0);
      };
      for (std::int64_t word = 0; word < words_; ++word) {
        const auto first = word / kChunkWords * kChunkWords, count = chunk_words(first);
        auto* const to = reinterpret_cast<std::uint32_t*>(taps_at(word, o)) + word - first;
        for (std::int64_t tap = 0; tap < kTaps; ++tap)
          to[tap * count] = pair(number(2 * word, tap), number(2 * word + 1, tap));
      }
    }
  });
}

void TiledConvolution::enter(const Tensor& in, const Image& image) const {
  const auto* const pixels = static_cast<const std::uint16_t*>(in.const_data_ptr());
  const auto plane = in.stride(0), row = in.stride(1), columns = in.size(2);
  const std::vector<std::uint16_t> none(std::size_t(columns), 0);
  at::parallel_for(0, in.size(1), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto h = begin; h < end; ++h) {
      const auto channel = [&](std::int64_t i) {
        return i < inputs_ ? pixels + i * plane + h * row : none.data();
      };
      for (std::int64_t word = 0; word < words_; ++word) {
        const auto *const low = channel(2 * word), *const high = channel(2 * word + 1);
        auto* const to = reinterpret_cast<std::uint32_t*>(image.row(h) + word * image.stride);
        pair_each(low, high, columns, to);
      }
    }
  });
}

// Where the words of a chunk lie, tap by tap, relative to a panel's first pixel in the row above.
std::vector<std::int64_t> TiledConvolution::runs_of(const Image& image, std::int64_t word) const {
  std::vector<std::int64_t> runs;
  for (std::int64_t tap = 0; tap < kTaps; ++tap)
    for (std::int64_t c = word; c < word + chunk_words(word); c += kRun)
      runs.push_back((tap / 3 * image.words + c) * image.stride + tap % 3);
  return runs;
}

void TiledConvolution::convolve(const Tensor& in, const PutPixels& put) {
  const auto rows = in.size(1) - 2, columns = in.size(2) - 2;
  const std::int64_t panel = kernels_.columns, most_outputs = kernels_.block_rows;
  check(in.size(0) == inputs_ && rows > 0 && columns > 0 && columns % panel == 0 &&
            in.stride(2) == 1 && in.scalar_type() == at::kBFloat16,
        "rows of shape ", in.sizes(), " for a convolution of ", inputs_, " channels in panels of ",
        panel);
  // An odd number of cache lines, so that words of one pixel do not share a cache set.
  const auto stride = (blocks_in(in.size(2), kLineNumbers) | 1) * kLineNumbers;
  if (const auto pairs = in.size(1) * words_ * stride; num_pairs_ < pairs) {
    pairs_.emplace(pairs);
    num_pairs_ = pairs;
  }
  const Image image{rows, columns, stride, pairs_->at(0), words_};
  enter(in, image);
  const auto panels = rows * (columns / panel), groups = blocks_in(panels, kTaskPanels);
  const auto tasks = groups * blocks_in(outputs_, most_outputs);
  std::atomic<std::int64_t> next = 0;
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
    const Buffer<float> sums(kTaskPanels * most_outputs * panel);
    for (auto i = next++; i < tasks; i = next++) {
      const auto m = i % groups * kTaskPanels, o = i / groups * most_outputs;
      run({.panels = {m, std::min(kTaskPanels, panels - m)},
           .outputs = {o, std::min(most_outputs, outputs_ - o)}},
          image, sums.at(0), put);
    }
  });
}

void TiledConvolution::run(const Task& task, const Image& image, float* sums,
                           const PutPixels& put) const {
  const std::int64_t panel = kernels_.columns, across = image.columns / panel;
  const auto sums_of = [&](std::int64_t m) { return sums + m * task.outputs.count * panel; };
  std::fill_n(sums, task.panels.count * task.outputs.count * panel, 0.F);
  for (std::int64_t word = 0; word < words_; word += kChunkWords) {
    const auto runs = runs_of(image, word);
    for (std::int64_t m = 0; m < task.panels.count; ++m) {
      const auto at = task.panels.begin + m;
      kernels_.multiply_gathered(taps_at(word, task.outputs.begin),
                                 kTaps * kChunkWords + kLineNumbers, task.outputs.count,
                                 {.words = image.row(at / across) + at % across * panel,
                                  .runs = runs.data(),
                                  .stride = image.stride},
                                 kTaps * chunk_words(word), sums_of(m), panel);
    }
  }
  for (std::int64_t o = 0; o < task.outputs.count; ++o)
    for (std::int64_t m = 0; m < task.panels.count; ++m) {
      const auto at = task.panels.begin + m;
      put({.channel = task.outputs.begin + o,
           .row = at / across,
           .column = at % across * panel,
           .count = panel},
          sums_of(m) + o * panel);
    }
}

}  // namespace braid::ops::cpu
