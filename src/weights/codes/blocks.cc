#include "weights/codes/blocks.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#define BRAID_DEVICE
#include "weights/codes/block_loops.h"
#include "weights/codes/rotation.h"
#include "weights/codes/tiles.h"

namespace braid {
namespace {

// The blocks of one tensor; a vector is one row.
Tensor blocks_as_numbers(const Piece& piece) {
  const auto& entry = piece.stored->entry;
  const auto [begin, size] = bytes_of(piece);
  piece.stored->file->prefetch(begin, size);
  const bool is_vector = entry.shape.size() < 2;
  auto shape = entry.shape;
  if (!is_vector) shape[0] = piece.rows.count;
  const auto numbers = at::empty(shape, at::kFloat);
  const auto [per_block, block_bytes] = block_of(entry.type);
  const auto* const from =
      reinterpret_cast<const std::uint8_t*>(piece.stored->file->bytes().data()) + begin;
  auto* const to = numbers.mutable_data_ptr<float>();
  constexpr std::int64_t kBlocksAtOnce = 64;
  at::parallel_for(0, std::int64_t(size) / block_bytes, kBlocksAtOnce,
                   [&, per = per_block, each = block_bytes](std::int64_t first, std::int64_t last) {
                     decode_blocks(entry.type, from + first * each, last - first, to + first * per);
                   });
  return is_vector && !shape.empty() ? numbers.narrow(0, piece.rows.begin, piece.rows.count)
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

Piece scales_of(const Piece& piece) {
  const auto* const scales = piece.stored->scales.get();
  if (scales->arrangement == Arrangement::kSquares) {
    const auto first = piece.rows.begin / kSquareSide;
    const auto end = piece.rows.begin + piece.rows.count + kSquareSide - 1;
    return {scales, {.begin = first, .count = end / kSquareSide - first}};
  }
  return {scales, scales->entry.shape.empty() ? Share{.begin = 0, .count = 1} : piece.rows};
}

namespace {

Tensor codes_of(const Piece& piece) {
  if (is_of_blocks(piece.stored->entry.type)) return blocks_as_numbers(piece);
  if (piece.stored->arrangement == Arrangement::kTiles) return rows_of_tiles(piece);
  return view_of(piece).to(at::kFloat);
}

// The scales of squares, for every number of a piece.
Tensor of_numbers(const Tensor& scales, const Piece& piece) {
  const auto before = piece.rows.begin % kSquareSide;  // rows of the first square
  return scales.repeat_interleave(kSquareSide, 0)
      .narrow(0, before, piece.rows.count)
      .repeat_interleave(kSquareSide, 1)
      .narrow(1, 0, piece.stored->entry.shape[1]);
}

Tensor scaled(const Tensor& codes, const Piece& piece) {
  if (!piece.stored->scales) return codes;
  const auto scales = numbers_of(scales_of(piece)).to(at::kFloat);
  if (piece.stored->scales->arrangement == Arrangement::kSquares)
    return codes * of_numbers(scales, piece);
  if (scales.dim() == 0) return codes * scales;
  const auto groups = codes.view({scales.size(0), scales.size(1), -1});
  return (groups * scales.unsqueeze(-1)).view(codes.sizes());
}

}  // namespace

Tensor decoded(const Piece& piece) {
  const auto numbers = scaled(codes_of(piece), piece);
  const auto together = piece.stored->rotated_together;
  return together ? rotated_back(numbers, together) : numbers;
}

}  // namespace braid
