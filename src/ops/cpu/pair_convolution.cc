#include "ops/cpu/pair_convolution.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace braid::ops::cpu {
namespace {

constexpr std::int64_t kFewestOutputs = 16;

// Numbers of two channels, every `kStride`-th: one pair per word.
template <std::int64_t kStride>
void pair_numbers(const std::uint16_t* low, const std::uint16_t* high, std::int64_t count,
                  std::uint32_t* to) {
  if constexpr (kStride == 2) {
    // two adjacent numbers are loaded at once: vectors have no gaps then
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint32_t a, b;
      std::memcpy(&a, low + 2 * i, sizeof a);
      std::memcpy(&b, high + 2 * i, sizeof b);
      to[i] = (a & 0xffff) | b << 16;
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = low[i] | std::uint32_t(high[i]) << 16;
  }
}

// Adjacent pixels of a result's row: the first word of each in a panel, and in a row of the input.
struct PanelRun {
  std::int64_t at, offset, count;
};

}  // namespace

struct PairConvolution::Image {
  const std::uint16_t* pixels;
  std::int64_t plane, row, rows, columns;  // strides; size of the result
};

bool PairConvolution::pays(at::IntArrayRef weight, const ProductKernels& k) {
  return k.halves_per_word == 2 && !k.is_transposed() && weight[0] >= kFewestOutputs;
}

PairConvolution::PairConvolution(const Tensor& weight, std::int64_t stride, const ProductKernels& k)
    : kernels_(k),
      outputs_(weight.size(0)),
      inputs_(weight.size(1)),
      kernel_(weight.size(2)),
      stride_(stride),
      pairs_(blocks_in(inputs_, 2)),
      words_(kernel_ * kernel_ * pairs_),
      taps_(outputs_ * (words_ + kLineNumbers)) {
  check(weight.scalar_type() == at::kBFloat16 && (stride == 1 || stride == 2) &&
            pays(weight.sizes(), k),
        "a convolution at stride ", stride, " by a weight of shape ", weight.sizes(), " in ",
        weight.scalar_type(), " by pairs");
  enter_taps(weight.contiguous());
}

void PairConvolution::enter_taps(const Tensor& weight) const {
  const auto* const numbers = static_cast<const std::uint16_t*>(weight.const_data_ptr());
  const auto taps = kernel_ * kernel_;
  at::parallel_for(0, outputs_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto o = begin; o < end; ++o) {
      auto* const to = reinterpret_cast<std::uint32_t*>(taps_.at(o * (words_ + kLineNumbers)));
      const auto number = [&](std::int64_t i, std::int64_t tap) {
        return i < inputs_ ? numbers[(o * inputs_ + i) * taps + tap] : std::uint16_t(0);
      };
      for (std::int64_t w = 0; w < words_; ++w)
        to[w] = number(w % pairs_ * 2, w / pairs_) |
                std::uint32_t(number(w % pairs_ * 2 + 1, w / pairs_)) << 16;
    }
  });
}

// Word w of the panel: channels 2 (w % pairs) and the next at tap w / pairs, of all pixels.
void PairConvolution::pack(const Image& image, Range pixels, Range numbers, float* panel) const {
  const std::int64_t width = kernels_.columns;
  const std::vector<std::uint16_t> none(std::size_t(stride_ * width), 0);
  std::vector<PanelRun> runs;
  for (std::int64_t i = 0; i < pixels.count; i += runs.back().count) {
    const auto row = (pixels.begin + i) / image.columns,
               column = (pixels.begin + i) % image.columns;
    runs.push_back({.at = i,
                    .offset = stride_ * (row * image.row + column),
                    .count = std::min(pixels.count - i, image.columns - column)});
  }
  for (std::int64_t i = 0; i < numbers.count / 2; ++i) {
    const auto word = numbers.begin / 2 + i, tap = word / pairs_, channel = word % pairs_ * 2;
    const auto* const low =
        image.pixels + channel * image.plane + tap / kernel_ * image.row + tap % kernel_;
    auto* const to = reinterpret_cast<std::uint32_t*>(panel + i * width);
    for (const auto& run : runs) {
      const auto* const high = channel + 1 < inputs_ ? low + image.plane + run.offset : none.data();
      (stride_ == 2 ? pair_numbers<2> : pair_numbers<1>)(low + run.offset, high, run.count,
                                                         to + run.at);
    }
    std::fill(to + pixels.count, to + width, 0U);
  }
}

void PairConvolution::convolve(const Tensor& in, const PutPixels& put) const {
  const auto rows = (in.size(1) - kernel_) / stride_ + 1,
             columns = (in.size(2) - kernel_ + 1) / stride_;
  check(in.size(0) == inputs_ && in.size(1) >= kernel_ && columns > 0 && in.stride(2) == 1 &&
            in.scalar_type() == at::kBFloat16,
        "rows of shape ", in.sizes(), " in ", in.scalar_type(), " for a convolution of ", inputs_,
        " channels at stride ", stride_);
  const Image image{static_cast<const std::uint16_t*>(in.const_data_ptr()), in.stride(0),
                    in.stride(1), rows, columns};
  run(Product<float>{
      .kernels = &kernels_,
      .tokens = outputs_,
      .outputs = rows * columns,
      .inputs = 2 * words_,
      .x = {taps_.at(0), words_ + kLineNumbers},
      .take = {},
      .pack = [&](Range pixels, Range numbers,
                  float* panel) { pack(image, pixels, numbers, panel); },
      .begin = [](std::int64_t, Range pixels,
                  float* sums) { std::fill_n(sums, pixels.count, 0.F); },
      .finish =
          [&](std::int64_t channel, Range pixels, const float* sums) {
            for (std::int64_t i = 0; i < pixels.count;) {
              const auto row = (pixels.begin + i) / columns, column = (pixels.begin + i) % columns;
              const auto count = std::min(pixels.count - i, columns - column);
              put({.channel = channel, .row = row, .column = column, .count = count}, sums + i);
              i += count;
            }
          }});
}

}  // namespace braid::ops::cpu
