#include "weights/codes/blocks.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#define BRAID_DEVICE
#include "weights/codes/as_stored.h"
#include "weights/codes/block_loops.h"
#include "weights/codes/rotation.h"
#include "weights/codes/tiles.h"
#include "weights/files/scaled_weights.h"

namespace braid {
namespace {

// The blocks of one tensor; a vector is one row.
Tensor blocks_as_numbers(const RowRange& range) {
  const auto& entry = range.stored->entry;
  const auto [begin, size] = bytes_of(range);
  range.stored->file->prefetch(begin, size);
  const bool is_vector = entry.shape.size() < 2;
  auto shape = entry.shape;
  if (!is_vector) shape[0] = range.rows.count;
  const auto numbers = at::empty(shape, at::kFloat);
  const auto [per_block, block_bytes] = block_of(entry.type);
  const auto* const from =
      reinterpret_cast<const std::uint8_t*>(range.stored->file->bytes().data()) + begin;
  auto* const to = numbers.mutable_data_ptr<float>();
  constexpr std::int64_t kBlocksAtOnce = 64;
  at::parallel_for(0, std::int64_t(size) / block_bytes, kBlocksAtOnce,
                   [&, per = per_block, each = block_bytes](std::int64_t first, std::int64_t last) {
                     decode_blocks(entry.type, from + first * each, last - first, to + first * per);
                   });
  return is_vector && !shape.empty() ? numbers.narrow(0, range.rows.begin, range.rows.count)
                                     : numbers;
}

// Receives one number at a time: the definition.
struct ToNumber {
  using Number = float;
  static constexpr int kLanes = 1;
  float *out, scale;

  static int bytes_at(const uint8_t* p) { return *p; }
  static int codes_at(const uint8_t* p) { return int8_t(*p); }
  static int bits_at(uint32_t bits, int i) { return int(bits >> i & 1); }
  static float numbers(int codes) { return float(codes); }
  static float chosen(const float (&numbers)[16], int place) { return numbers[place]; }
  void put(int place, float number) const { out[place] = number * scale; }
};

// Magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign.
float float4_of(int code) {
  constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float size = kMagnitudes[code & 7];
  return code & 8 ? -size : size;
}

void decode_float4(ElementType type, const std::uint8_t* pairs, std::int64_t count, float* out) {
  const int low = type == ElementType::kFloat4E2M1 ? 0 : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    out[2 * i + low] = float4_of(pairs[i] & 15);
    out[2 * i + 1 - low] = float4_of(pairs[i] >> 4);
  }
}

}  // namespace

void decode_blocks(ElementType type, const std::uint8_t* blocks, std::int64_t count, float* out) {
  if (is_float4(type)) return decode_float4(type, blocks, count, out);
  const auto loop = std::size_t(type) - std::size_t(ElementType::kQ4_0);
  kBlockLoops<ToNumber>[loop](blocks, count, 1, out);
}

RowRange scales_of(const RowRange& range) {
  const auto& scales = range.stored->scales;
  if (scales->arrangement == Arrangement::kSquares) {
    const auto first = range.rows.begin / kSquareSide;
    const auto end = range.rows.begin + range.rows.count + kSquareSide - 1;
    return {scales, {.begin = first, .count = end / kSquareSide - first}};
  }
  return {scales, scales->entry.shape.empty() ? Share{.begin = 0, .count = 1} : range.rows};
}

namespace {

Tensor codes_of(const RowRange& range) {
  if (is_of_blocks(range.stored->entry.type)) return blocks_as_numbers(range);
  if (range.stored->arrangement == Arrangement::kTiles) return rows_of_tiles(range);
  return codes_in_place(range).to(at::kFloat);
}

// The scales of squares, for every number of a range.
Tensor of_numbers(const Tensor& scales, const RowRange& range) {
  const auto before = range.rows.begin % kSquareSide;  // rows of the first square
  return scales.repeat_interleave(kSquareSide, 0)
      .narrow(0, before, range.rows.count)
      .repeat_interleave(kSquareSide, 1)
      .narrow(1, 0, range.stored->entry.shape[1]);
}

// The scales of runs of neighbours, the last of which is shorter, for every number of a row.
Tensor of_runs(const Tensor& scales, std::int64_t columns) {
  return scales.repeat_interleave(neighbours_per_scale(columns, scales.size(1)), 1)
      .narrow(1, 0, columns);
}

Tensor scaled(const Tensor& codes, const RowRange& range) {
  if (!range.stored->scales) return codes;
  const auto scales = numbers_of(scales_of(range)).to(at::kFloat);
  if (range.stored->scales->arrangement == Arrangement::kSquares)
    return codes * of_numbers(scales, range);
  if (scales.dim() == 0) return codes * scales;
  const auto runs = scales.size(1);
  if (codes.size(-1) % runs > 0) return codes * of_runs(scales, codes.size(-1));
  const auto groups = codes.view({scales.size(0), runs, -1});
  return (groups * scales.unsqueeze(-1)).view(codes.sizes());
}

}  // namespace

Tensor decoded(const RowRange& range) {
  if (range.stored->packed) return packed_numbers(range);
  const auto numbers = scaled(codes_of(range), range);
  const auto together = range.stored->rotated_together;
  return together ? rotated(numbers, together) : numbers;
}

}  // namespace braid
