#include "ops/cpu/winograd.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "ops/kernels/products.h"

namespace braid::ops::cpu {
namespace {

// Bytes of tiles transformed at a time, before and after the products: they stay in the shared
// cache.
constexpr std::int64_t kChunkBytes = 32 << 20;
constexpr std::int64_t kFloat = sizeof(float);

}  // namespace

// Some panels of `tiles` tiles each.
struct Winograd::Chunk {
  std::int64_t first, panels, across;  // of the image: tiles per row
  std::int64_t count;                  // tiles of the image; the last panel may have more
  std::int64_t entered_stride, sums_stride;
  const Buffer<float>&entered, &sums;  // per point: panels [I tiles], and [O tiles]
};

Winograd::Winograd(const Tensor& weight, const WinogradKernels& kernels)
    : kernels_(kernels),
      outputs_(weight.size(0)),
      inputs_(weight.size(1)),
      point_stride_(outputs_ * inputs_ + kLineNumbers),
      taps_(kernels_.points * point_stride_) {
  const auto taps_33OI = weight.permute({2, 3, 0, 1}).contiguous();
  constexpr std::int64_t kGrain = 4096;
  at::parallel_for(0, outputs_ * inputs_, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::array<const float*, 9> taps;
    for (std::size_t i = 0; i < taps.size(); ++i)
      taps[i] = taps_33OI.const_data_ptr<float>() + std::int64_t(i) * outputs_ * inputs_ + begin;
    kernels_.enter_taps(taps.data(), end - begin, taps_.at(begin), point_stride_);
  });
}

std::int64_t Winograd::products(std::int64_t height, std::int64_t width, const WinogradKernels& k) {
  // The cost of transforming the taps, in tiles.
  constexpr std::int64_t kTaps = 8;
  const auto tiles = blocks_in(height, k.output) * blocks_in(width, k.output);
  return k.points * (round_up(tiles, k.tiles) + kTaps);
}

bool Winograd::pays(at::IntArrayRef weight, std::int64_t height, std::int64_t width,
                    const WinogradKernels& k) {
  // A channel's transforms cost as much as this many channels' products.
  constexpr std::int64_t kFewest = 16;
  return std::min(weight[0], weight[1]) >= kFewest && weight[2] == 3 && weight[3] == 3 &&
         products(height, width, k) < 9 * height * width;
}

void Winograd::convolve(const Tensor& in, const PutPixels& put) {
  const auto rows = in.size(1) - 2, columns = in.size(2) - 2 - WinogradKernels::kSlack;
  check(in.size(0) == inputs_ && rows > 0 && columns > 0 && rows % tile() == 0 &&
            columns % tile() == 0 && in.stride(2) == 1,
        "rows of shape ", in.sizes(), " for a convolution of ", inputs_, " channels in tiles of ",
        tile());
  const auto across = columns / tile(), count = rows / tile() * across;
  const auto all = blocks_in(count, kernels_.tiles);
  const auto panel_bytes = kernels_.points * kernels_.tiles * (inputs_ + outputs_) * kFloat;
  const auto each = std::clamp<std::int64_t>(kChunkBytes / panel_bytes, 1, all);
  const auto entered_stride = each * inputs_ * kernels_.tiles + kLineNumbers;
  const auto sums_stride = each * outputs_ * kernels_.tiles + kLineNumbers;
  if (panels_ < each) {
    entered_.emplace(kernels_.points * entered_stride);
    sums_.emplace(kernels_.points * sums_stride);
    panels_ = each;
  }
  for (std::int64_t first = 0; first < all; first += each) {
    const Chunk chunk{.first = first,
                      .panels = std::min(each, all - first),
                      .across = across,
                      .count = count,
                      .entered_stride = entered_stride,
                      .sums_stride = sums_stride,
                      .entered = *entered_,
                      .sums = *sums_};
    enter(in, chunk);
    multiply(chunk);
    leave(chunk, put);
  }
}

void Winograd::enter(const Tensor& in, const Chunk& chunk) const {
  const std::int64_t tiles = kernels_.tiles, row_stride = in.stride(1);
  std::vector<std::int64_t> offsets(std::size_t(chunk.panels * tiles));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto t = std::min(chunk.first * tiles + std::int64_t(i), chunk.count - 1);
    offsets[i] = t / chunk.across * tile() * row_stride + t % chunk.across * tile();
  }
  at::parallel_for(0, inputs_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = 0; b < chunk.panels; ++b)
      for (auto c = begin; c < end; ++c)
        kernels_.enter(in.const_data_ptr<float>() + c * in.stride(0), row_stride,
                       &offsets[std::size_t(b * tiles)],
                       chunk.entered.at((b * inputs_ + c) * tiles), chunk.entered_stride);
  });
}

// At each point, multiplies taps [O I] by panels [I tiles].
void Winograd::multiply(const Chunk& chunk) const {
  const auto& k = *kernels_.products;
  const std::int64_t tiles = kernels_.tiles, blocks = blocks_in(outputs_, k.block_rows);
  const auto multiply_block = [&](std::int64_t point, Range outputs) {
    const auto* const taps = taps_.at(point * point_stride_ + outputs.begin * inputs_);
    const auto* const entered = chunk.entered.at(point * chunk.entered_stride);
    auto* const sums = chunk.sums.at(point * chunk.sums_stride);
    for (std::int64_t c = 0; c < inputs_; c += k.depth)
      for (std::int64_t b = 0; b < chunk.panels; ++b) {
        auto* const to = sums + (b * outputs_ + outputs.begin) * tiles;
        if (c == 0) std::fill_n(to, outputs.count * tiles, 0.0F);
        for (std::int64_t o = 0; o < outputs.count; o += k.rows)
          k.multiply_halves(taps + o * inputs_ + c, inputs_,
                            std::min<std::int64_t>(k.rows, outputs.count - o),
                            entered + (b * inputs_ + c) * tiles,
                            std::min<std::int64_t>(k.depth, inputs_ - c), to + o * tiles, tiles);
      }
  };
  at::parallel_for(0, kernels_.points * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto o = i % blocks * k.block_rows;
      multiply_block(i / blocks, {o, std::min<std::int64_t>(k.block_rows, outputs_ - o)});
    }
  });
}

void Winograd::leave(const Chunk& chunk, const PutPixels& put) const {
  const std::int64_t tiles = kernels_.tiles;
  // Adjacent tiles are put as one run.
  const auto put_panel = [&](std::int64_t channel, std::int64_t panel, const float* pixels) {
    const auto first = (chunk.first + panel) * tiles, last = std::min(first + tiles, chunk.count);
    for (auto t = first; t < last;) {
      const auto row = t / chunk.across, column = t % chunk.across;
      const auto run = std::min(last - t, chunk.across - column);
      for (std::int64_t r = 0; r < tile(); ++r)
        put({.channel = channel,
             .row = row * tile() + r,
             .column = column * tile(),
             .count = run * tile()},
            pixels + (r * tiles + t - first) * tile());
      t += run;
    }
  };
  at::parallel_for(0, outputs_, 1, [&](std::int64_t begin, std::int64_t end) {
    const Buffer<float> pixels(tiles * tile() * tile());
    for (auto o = begin; o < end; ++o)
      for (std::int64_t b = 0; b < chunk.panels; ++b) {
        kernels_.leave(chunk.sums.at((b * outputs_ + o) * tiles), chunk.sums_stride, pixels.at(0));
        put_panel(o, b, pixels.at(0));
      }
  });
}

}  // namespace braid::ops::cpu
