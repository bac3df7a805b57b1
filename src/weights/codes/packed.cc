#include "weights/codes/packed.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "weights/codes/blocks.h"

namespace braid {
namespace {

bool can_stay(const Piece& piece, const Piece& first) {
  const auto& entry = piece.stored->entry;
  const auto* const scales = piece.stored->scales.get();
  const bool has_row_scales =
      !scales || scales->entry.shape.empty() ||
      (scales->entry.shape.back() == 1 && scales->arrangement != Arrangement::kSquares);
  return entry.shape.size() == 2 && entry.type == first.stored->entry.type && has_row_scales &&
         !piece.stored->rotated_together &&
         (is_float8(entry.type) || (is_of_blocks(entry.type) && !is_float4(entry.type)));
}

// Selects the whole blocks that contain the columns, and the columns among their numbers.
void cut_to_blocks(const std::vector<Share>& columns, Block block, KeptRows& kept,
                   QuantFormat& coding) {
  std::int64_t at = 0;  // position among the kept blocks' numbers
  bool is_exact = true;
  for (const auto& run : columns) {
    const auto first = run.begin / block.numbers;
    const auto last = (run.begin + run.count + block.numbers - 1) / block.numbers;
    kept.bytes.push_back({.begin = first * block.bytes, .count = (last - first) * block.bytes});
    coding.columns.push_back({.begin = at + run.begin - first * block.numbers, .count = run.count});
    at += (last - first) * block.numbers;
    is_exact = is_exact && (last - first) * block.numbers == run.count;
  }
  if (is_exact) coding.columns.clear();
}

// One row of bytes per row of the piece, in the mapped file.
Tensor stored_bytes(const Piece& piece) {
  const auto [begin, size] = bytes_of(piece);
  const auto keep = piece.stored->file;
  keep->prefetch(begin, size);
  auto* const data = const_cast<std::byte*>(keep->bytes().data()) + begin;
  return at::from_blob(
      data, {piece.rows.count, std::int64_t(size) / std::max<std::int64_t>(1, piece.rows.count)},
      [keep](void*) {}, at::TensorOptions(at::kByte));
}

Tensor row_scales(const std::vector<Piece>& pieces) {
  std::vector<Tensor> scales;
  for (const auto& piece : pieces) {
    const auto own = piece.stored->scales ? numbers_of(scales_of(piece)).to(at::kFloat)
                                          : at::ones({}, at::kFloat);
    scales.push_back(own.dim() == 0 ? own.expand({piece.rows.count, 1}) : own);
  }
  return at::cat(scales);
}

}  // namespace

std::optional<KeptRows> kept_as_stored(const std::vector<Piece>& pieces,
                                       const std::vector<Share>& columns) {
  KeptRows kept{.coding = {}, .rows = 0, .row_bytes = 0, .bytes = {}, .has_scales = false};
  for (const auto& piece : pieces) {
    if (!can_stay(piece, pieces.front())) return {};
    kept.rows += piece.rows.count;
    kept.has_scales = kept.has_scales || piece.stored->scales;
  }
  const auto& entry = pieces.front().stored->entry;
  const auto block = block_of(entry.type);
  QuantFormat coding{.type = entry.type,
                     .inputs = columns.empty() ? entry.shape[1] : total_count(columns),
                     .columns = {}};
  cut_to_blocks(columns, block, kept, coding);
  kept.row_bytes =
      columns.empty() ? entry.shape[1] / block.numbers * block.bytes : total_count(kept.bytes);
  kept.coding = std::make_shared<const QuantFormat>(std::move(coding));
  return kept;
}

LoadedMatrix load_coded(const std::vector<Piece>& pieces, const KeptRows& kept) {
  LoadedMatrix loaded{.matrix = {.coding = kept.coding}, .read = {}};
  if (kept.has_scales) loaded.matrix.scales_N1 = row_scales(pieces);
  if (pieces.size() == 1 && kept.bytes.empty()) {
    loaded.matrix.values_NC = stored_bytes(pieces.front());
    loaded.read.all = loaded.matrix.values_NC.numel();
    return loaded;
  }
  const auto bytes = at::empty({kept.rows, kept.row_bytes}, at::kByte);
  std::int64_t row = 0;
  for (const auto& piece : pieces) {
    loaded.read +=
        copy_columns(bytes.narrow(0, row, piece.rows.count), stored_bytes(piece), kept.bytes);
    row += piece.rows.count;
    const auto read = bytes_of(piece);
    piece.stored->file->release(read.begin, read.size);
  }
  loaded.matrix.values_NC = bytes;
  return loaded;
}

Tensor decoded(const Matrix& matrix, at::ScalarType dtype) {
  const auto& coding = *matrix.coding;
  const auto bytes = matrix.values_NC.cpu().contiguous();
  const auto rows = bytes.size(0);
  Tensor numbers;
  if (is_of_blocks(coding.type)) {
    const auto block = block_of(coding.type);
    const auto blocks = bytes.numel() / block.bytes;
    numbers = at::empty({blocks * block.numbers}, at::kFloat);
    decode_blocks(coding.type, bytes.const_data_ptr<std::uint8_t>(), blocks,
                  numbers.mutable_data_ptr<float>());
    numbers = numbers.view({rows, -1});
  } else {
    const bool is_e4m3 = coding.type == ElementType::kFloat8E4M3;
    numbers = bytes.view(is_e4m3 ? at::kFloat8_e4m3fn : at::kFloat8_e5m2).to(at::kFloat);
  }
  if (matrix.scales_N1.defined()) numbers = numbers * matrix.scales_N1.cpu();
  std::vector<Tensor> runs;
  for (const auto& run : coding.columns) runs.push_back(numbers.narrow(1, run.begin, run.count));
  return (runs.empty() ? numbers : at::cat(runs, 1)).to(matrix.values_NC.device()).to(dtype);
}

}  // namespace braid
