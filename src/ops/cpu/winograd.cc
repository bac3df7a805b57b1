#include "ops/cpu/winograd.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/error.h"

namespace braid::ops::cpu {
namespace {

// Bytes of a thread's tiles at their points, if that is a panel or more: about its L2 cache. On Zen
// 4 one panel of 128 to 512 channels was faster than two or more.
constexpr std::int64_t kChunkBytes = 2 << 20;
constexpr std::int64_t kFloat = sizeof(float);

// [O I 3 3] to [9, numbers], numbers in the order in which they are multiplied.
Tensor in_strips(const Tensor& weight, std::int64_t rows) {
  const auto outputs = weight.size(0), inputs = weight.size(1), whole = outputs / rows * rows;
  const auto strips = weight.narrow(0, 0, whole).reshape({-1, rows, inputs, 9});
  const auto rest = weight.narrow(0, whole, outputs - whole).reshape({-1, inputs, 9});
  return at::cat({strips.permute({3, 0, 2, 1}).reshape({9, whole * inputs}),
                  rest.permute({2, 1, 0}).reshape({9, (outputs - whole) * inputs})},
                 1);
}

// Columns that any `tiles` tiles and their surroundings take.
std::int64_t taken_stride(std::int64_t tiles, std::int64_t tile) {
  return tiles * (tile + 2) + WinogradKernels::kSlack;
}

// Adjacent tiles of a row of tiles; `at` is where their pixels are taken to.
struct TileRun {
  std::int64_t row, column, tiles, at;
};

// A run of a row that may begin and end outside the image. That of the next channel is prefetched.
void take_padded(const Winograd::Image& image, const PixelRun& run, bool is_last, float* to) {
  const auto inside = run.row >= 0 && run.row < image.height;
  const auto first = std::clamp<std::int64_t>(-run.column, 0, run.count);
  const auto last = std::clamp(image.width - run.column, first, run.count);
  if (!inside || first == last) {
    std::fill_n(to, run.count, 0.F);
    return;
  }
  std::fill(to, to + first, 0.F);
  PixelRun taken{run.channel, run.row, run.column + first, last - first};
  image.take(taken, to + first);
  ++taken.channel;
  if (image.prefetch && !is_last) image.prefetch(taken);
  std::fill(to + last, to + run.count, 0.F);
}

}  // namespace

// Some panels of `tiles` tiles each, numbered from left to right and row by row.
struct Winograd::Chunk {
  std::int64_t first, panels;
  std::int64_t across;  // tiles per row
  std::int64_t count;   // of all tiles; the last panel may have more
  Range rows;           // of the image
};

// One thread's memory. The points of a panel's tiles are [channels 1 + points tiles]: before the
// products from the second point on, after them from the first. So the sums at a point replace what
// is no longer needed, and half the memory competes for the caches.
struct Winograd::Workspace {
  std::int64_t panels;  // capacity
  Buffer<float> points;
  Buffer<float> taken, left;  // pixels of one channel, before and after

  Workspace(const Winograd& w, std::int64_t most)
      : panels(most),
        points(most * std::max(w.inputs_, w.outputs_) * w.channel_stride()),
        taken((w.tile() + 2) * taken_stride(most * w.kernels_.tiles, w.tile())),
        left(w.kernels_.tiles * w.tile() * w.tile()) {}
};

std::int64_t Winograd::channel_stride() const {
  return (1 + kernels_.points) * kernels_.tiles + kLineNumbers;
}

Winograd::Winograd(const Tensor& weight, const WinogradKernels& kernels)
    : kernels_(kernels),
      outputs_(weight.size(0)),
      inputs_(weight.size(1)),
      point_stride_(outputs_ * inputs_ + kLineNumbers),
      taps_(kernels_.points * point_stride_),
      spaces_(std::size_t(at::get_num_threads())) {
  const auto taps_9N = in_strips(weight, kernels_.rows);
  constexpr std::int64_t kGrain = 4096;
  at::parallel_for(0, outputs_ * inputs_, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::array<const float*, 9> taps;
    for (std::size_t i = 0; i < taps.size(); ++i)
      taps[i] = taps_9N.const_data_ptr<float>() + std::int64_t(i) * outputs_ * inputs_ + begin;
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

void Winograd::convolve(const Image& image, Range rows, const Result& result) {
  check(rows.count > 0 && rows.begin % tile() == 0 && rows.begin + rows.count <= image.height,
        "rows ", rows.begin, " to ", rows.begin + rows.count, " of an image of ", image.height,
        " in tiles of ", tile());
  const auto across = blocks_in(image.width, tile());
  const auto count = blocks_in(rows.count, tile()) * across;
  const auto all = blocks_in(count, kernels_.tiles), threads = std::int64_t(spaces_.size());
  const auto panel_bytes = channel_stride() * std::max(inputs_, outputs_) * kFloat;
  const auto most = std::max<std::int64_t>(1, kChunkBytes / panel_bytes);
  const auto chunks = std::min(all, round_up(blocks_in(all, most), threads));
  const auto panels = blocks_in(all, chunks);
  std::atomic<std::int64_t> next = 0;
  at::parallel_for(0, threads, 1, [&](std::int64_t begin, std::int64_t) {
    auto& space = spaces_[std::size_t(begin)];
    for (auto i = next++; i < chunks; i = next++) {
      if (!space || space->panels < panels) space = std::make_shared<Workspace>(*this, panels);
      const auto first = i * all / chunks;
      const Chunk chunk{.first = first,
                        .panels = (i + 1) * all / chunks - first,
                        .across = across,
                        .count = count,
                        .rows = rows};
      enter(image, chunk, *space);
      multiply(chunk, *space);
      leave(chunk, *space, result);
    }
  });
}

void Winograd::enter(const Image& image, const Chunk& chunk, const Workspace& space) const {
  const auto tiles = chunk.panels * kernels_.tiles, stride = taken_stride(tiles, tile());
  std::vector<TileRun> runs;
  std::vector<std::int64_t> offsets;
  for (auto t = chunk.first * kernels_.tiles, at = std::int64_t(0); std::ssize(offsets) < tiles;) {
    const auto last = std::min(chunk.count, (chunk.first + chunk.panels) * kernels_.tiles);
    const auto column = t % chunk.across, count = std::min(last - t, chunk.across - column);
    if (count == 0) {  // the last panel's unused tiles repeat a tile
      offsets.push_back(offsets.back());
      continue;
    }
    runs.push_back({chunk.rows.begin + t / chunk.across * tile(), column * tile(), count, at});
    for (std::int64_t i = 0; i < count; ++i) offsets.push_back(at + i * tile());
    at += count * tile() + 2;
    t += count;
  }
  for (std::int64_t c = 0; c < inputs_; ++c) {
    for (const auto& run : runs)
      for (std::int64_t r = 0; r < tile() + 2; ++r)
        take_padded(image, {c, run.row + r - 1, run.column - 1, run.tiles * tile() + 2},
                    c + 1 == inputs_, space.taken.at(r * stride + run.at));
    for (std::int64_t b = 0; b < chunk.panels; ++b)
      kernels_.enter(space.taken.at(0), stride, &offsets[std::size_t(b * kernels_.tiles)],
                     points_of(space, b, c) + kernels_.tiles);
  }
}

float* Winograd::points_of(const Workspace& space, std::int64_t panel, std::int64_t channel) const {
  return space.points.at((panel * std::max(inputs_, outputs_) + channel) * channel_stride());
}

// At each point, multiplies taps [O I] by panels [I tiles].
void Winograd::multiply(const Chunk& chunk, const Workspace& space) const {
  for (std::int64_t point = 0; point < kernels_.points; ++point)
    for (std::int64_t o = 0; o < outputs_; o += kernels_.rows)
      for (std::int64_t b = 0; b < chunk.panels; ++b)
        kernels_.multiply(taps_.at(point * point_stride_ + o * inputs_),
                          std::min<std::int64_t>(kernels_.rows, outputs_ - o),
                          points_of(space, b, 0) + (1 + point) * kernels_.tiles, channel_stride(),
                          inputs_, points_of(space, b, o) + point * kernels_.tiles,
                          channel_stride());
}

// Adjacent tiles are put as one run.
void Winograd::leave(const Chunk& chunk, const Workspace& space, const Result& result) const {
  const std::int64_t tiles = kernels_.tiles;
  const auto put_run = [&](PixelRun run, const float* pixels) {
    result.put(run, pixels);
    ++run.channel;
    if (result.prefetch && run.channel < outputs_) result.prefetch(run);
  };
  const auto put_panel = [&](std::int64_t channel, std::int64_t panel) {
    const auto first = (chunk.first + panel) * tiles, last = std::min(first + tiles, chunk.count);
    for (auto t = first; t < last;) {
      const auto row = t / chunk.across, column = t % chunk.across;
      const auto run = std::min(last - t, chunk.across - column);
      for (std::int64_t r = 0; r < tile(); ++r)
        put_run({.channel = channel,
                 .row = chunk.rows.begin + row * tile() + r,
                 .column = column * tile(),
                 .count = run * tile()},
                space.left.at((r * tiles + t - first) * tile()));
      t += run;
    }
  };
  for (std::int64_t b = 0; b < chunk.panels; ++b)
    for (std::int64_t o = 0; o < outputs_; ++o) {
      kernels_.leave(points_of(space, b, o), space.left.at(0));
      put_panel(o, b);
    }
}

}  // namespace braid::ops::cpu
