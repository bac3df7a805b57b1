#include "weights/codes/int8_load.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "weights/codes/float8.h"
#include "weights/codes/int8.h"

namespace braid {
namespace {

std::int64_t width_of(const std::vector<Share>& columns, std::int64_t all) {
  if (columns.empty()) return all;
  std::int64_t width = 0;
  for (const auto& share : columns) width += share.count;
  return width;
}

void keep(const Tensor& codes, const std::vector<Share>& columns, Tensor target) {
  if (columns.empty()) {
    target.copy_(codes);
    return;
  }
  std::int64_t column = 0;
  for (const auto& share : columns) {
    target.narrow(1, column, share.count).copy_(codes.narrow(1, share.begin, share.count));
    column += share.count;
  }
}

// A GPU starts some kernels per run, a CPU keeps a run in its cache.
std::int64_t numbers_at_once(const Target& target) {
  return target.device.is_cpu() ? 1 << 19 : 1 << 22;
}

}  // namespace

LoadedMatrix quantize_pieces(const std::vector<Piece>& pieces, const std::vector<Share>& columns,
                             at::ScalarType dtype, Quantize form, const Target& target) {
  std::int64_t rows = 0;
  for (const auto& piece : pieces) rows += piece.rows.count;
  const auto width = width_of(columns, pieces.front().stored->entry.shape[1]);
  const auto scale_dtype = form == Quantize::kInt8V1 ? dtype : at::kFloat;
  const auto on = at::TensorOptions().device(target.device);
  Matrix whole{.form = form,
               .values_NC = at::empty({rows, width}, on.dtype(type_of_codes(form))),
               .scales_N1 = at::empty({rows, 1}, on.dtype(scale_dtype)),
               .coding = coding_of(form)};
  std::int64_t row = 0;
  BytesRead read;
  for (const auto& run : cut(pieces, numbers_at_once(target))) {
    const auto numbers = moved(numbers_of(run), target);
    const auto bytes = bytes_of(run);
    read.all += std::int64_t(bytes.size);
    const auto quantised = quantize_rows(numbers.to(dtype), form);
    const auto made = rows_of(whole, row, run.rows.count);
    keep(quantised.values_NC, columns, made.values_NC);
    Tensor(made.scales_N1).copy_(quantised.scales_N1);
    run.stored->file->release(bytes.begin, bytes.size);
    row += run.rows.count;
  }
  return {.matrix = whole, .read = read};
}

Matrix share_of_columns(const Matrix& matrix, const std::vector<Share>& columns) {
  if (columns.empty()) return matrix;
  auto share = matrix;
  share.values_NC = matrix.values_NC.new_empty({matrix.values_NC.size(0), width_of(columns, 0)});
  keep(matrix.values_NC, columns, share.values_NC);
  return share;
}

LoadedMatrix load_codes(const std::vector<Piece>& codes, const std::vector<Piece>& scales,
                        const std::vector<Share>& columns, Quantize form) {
  const auto kept = assemble(scales, {}, scales.front().stored->dtype());
  LoadedMatrix loaded{.matrix = {.form = form, .scales_N1 = kept.tensor}, .read = kept.read};
  if (codes.size() == 1 && columns.empty()) {
    loaded.matrix.values_NC = view_of(codes.front());
    loaded.read.all += loaded.matrix.values_NC.numel();
    return loaded;
  }
  const auto joined = assemble(codes, columns, at::kChar);
  loaded.matrix.values_NC = joined.tensor;
  loaded.read += joined.read;
  return loaded;
}

}  // namespace braid
