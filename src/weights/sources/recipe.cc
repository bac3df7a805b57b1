#include "weights/sources/recipe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "weights/codes/float8.h"
#include "weights/codes/int8.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

constexpr std::int64_t kNumbersDrawnAtOnce = std::int64_t(1) << 22;

std::vector<std::int64_t> with_extents(std::vector<std::int64_t> shape, std::int64_t rows,
                                       const std::vector<Share>& columns) {
  if (!shape.empty()) shape[0] = rows;
  if (!columns.empty()) shape[1] = total_count(columns);
  return shape;
}

std::vector<std::int64_t> shape_of(const Excerpt& from) {
  std::int64_t rows = 0;
  for (const auto& piece : from.pieces) rows += piece.rows.count;
  return with_extents(from.pieces.front().stored->entry.shape, rows, from.columns);
}

// The bytes that are read of the stored tensors. Quantized rows are decoded whole.
std::int64_t bytes_of(const Excerpt& from) {
  std::int64_t bytes = 0;
  for (const auto& piece : from.pieces) {
    const auto& columns = piece.stored->is_quantized() ? std::vector<Share>() : from.columns;
    const auto shape = with_extents(piece.stored->entry.shape, piece.rows.count, columns);
    const auto block = block_of(piece.stored->entry.type);
    bytes += c10::multiply_integers(shape) * block.bytes / block.numbers;
  }
  return bytes;
}

std::vector<TensorForm> tensors_of(Quantize form, std::vector<std::int64_t> shape,
                                   at::ScalarType dtype) {
  if (form == Quantize::kNone) return {{dtype, std::move(shape)}};
  const auto rows = shape[0];
  return {{type_of_codes(form), std::move(shape)},
          {form == Quantize::kInt8V1 ? dtype : at::kFloat, {rows, 1}}};
}

std::string identity_of(const Excerpt& from) {
  return identity_of(from.pieces) + identity_of(from.columns);
}

std::string identity_of(const SyntheticExcerpt& from, Quantize form) {
  const auto& wanted = from.wanted;
  return text_of(from.values->identity_of(from.path, from.shape), " rows", identity_of(wanted.rows),
                 " ", identity_of(wanted.columns), " as ", from.dtype, " ",
                 form == Quantize::kNone ? "" : identity_of(form, from.dtype));
}

// A few million numbers at a time, so that not all exist beside their codes.
Matrix drawn_codes(const SyntheticExcerpt& from, Quantize form, at::Device device) {
  const auto& [values, path, shape, wanted, dtype] = from;
  const auto options = at::TensorOptions(dtype).device(device);
  const auto at_once = std::max<std::int64_t>(1, kNumbersDrawnAtOnce / shape[1]);
  std::vector<Tensor> codes, scales;
  for (const auto& run : wanted.rows)
    for (std::int64_t row = 0; row < run.count; row += at_once) {
      const Share some{.begin = run.begin + row, .count = std::min(at_once, run.count - row)};
      const auto rows = values->share(path, shape, {.rows = {some}, .columns = {}}, options);
      const auto made = share_of_columns(quantize_rows(rows, form), wanted.columns);
      codes.push_back(made.values_NC);
      scales.push_back(made.scales_N1);
    }
  return {.form = form,
          .values_NC = at::cat(codes),
          .scales_N1 = at::cat(scales),
          .coding = coding_of(form)};
}

Matrix drawn(const SyntheticExcerpt& from, Quantize form, at::Device device) {
  if (form != Quantize::kNone) return drawn_codes(from, form, device);
  const auto options = at::TensorOptions(from.dtype).device(device);
  return {.values_NC = from.values->share(from.path, from.shape, from.wanted, options)};
}

Recipe recipe_of_kept(const Excerpt& from, const KeptRows& kept) {
  Recipe recipe{.coding = kept.coding,
                .bytes = kept.rows * kept.row_bytes,
                .tensors = {{at::kByte, {kept.rows, kept.row_bytes}}},
                .identity = [=] { return identity_of(from) + " as stored"; },
                .make = [=](const Target&) { return load_coded(from.pieces, kept); }};
  if (kept.has_scales) recipe.tensors.push_back({at::kFloat, {kept.rows, 1}});
  return recipe;
}

}  // namespace

Recipe recipe_of_numbers(const Excerpt& from, at::ScalarType dtype) {
  return {.bytes = bytes_of(from),
          .tensors = tensors_of(Quantize::kNone, shape_of(from), dtype),
          .identity = [=] { return text_of(identity_of(from), " as ", dtype); },
          .make = [=](const Target& target) -> LoadedMatrix {
            const auto made = assemble(from.pieces, from.columns, dtype, target);
            return {.matrix = {.values_NC = made.tensor}, .read = made.read};
          }};
}

Recipe recipe_of_quantizing(const Excerpt& from, at::ScalarType dtype, Quantize form) {
  return {.form = form,
          .coding = coding_of(form),
          .bytes = bytes_of({from.pieces}),  // whole rows
          .tensors = tensors_of(form, shape_of(from), dtype),
          .identity = [=] { return identity_of(from) + " " + identity_of(form, dtype); },
          .make =
              [=](const Target& target) {
                return quantize_pieces(from.pieces, from.columns, dtype, form, target);
              }};
}

Recipe recipe_of_codes(const Excerpt& codes, const std::vector<Piece>& scales, Quantize form) {
  return {
      .form = form,
      .bytes = bytes_of(codes) + bytes_of({scales}),
      .tensors = {{at::kChar, shape_of(codes)},
                  {scales.front().stored->dtype(), shape_of({scales})}},
      .identity = [=] { return identity_of(codes) + " scales " + identity_of(scales); },
      .make = [=](const Target&) { return load_codes(codes.pieces, scales, codes.columns, form); }};
}

std::optional<Recipe> recipe_of_stored(const Excerpt& from) {
  const auto kept = kept_as_stored(from.pieces, from.columns);
  if (!kept) return {};
  return recipe_of_kept(from, *kept);
}

std::optional<Recipe> recipe_of_float8(const Excerpt& from, const std::vector<Piece>& whole) {
  const auto all = kept_as_stored(whole, {});
  if (!all || !all->has_scales || all->coding->type != ElementType::kFloat8E4M3) return {};
  auto kept = *kept_as_stored(from.pieces, from.columns);
  kept.has_scales = true;
  auto recipe = recipe_of_kept(from, kept);
  recipe.form = Quantize::kFloat8;
  recipe.coding = coding_of(recipe.form);
  recipe.make = [of_stored = recipe.make, coding = recipe.coding](const Target& target) {
    auto made = of_stored(target);
    made.matrix.form = Quantize::kFloat8;
    made.matrix.coding = coding;
    return made;
  };
  return recipe;
}

Recipe recipe_of_synthetic(const SyntheticExcerpt& from, Quantize form) {
  const auto& wanted = from.wanted;
  const auto shape = with_extents(from.shape, total_count(wanted.rows), wanted.columns);
  return {.form = form,
          .coding = coding_of(form),
          .tensors = tensors_of(form, shape, from.dtype),
          .identity = [=] { return identity_of(from, form); },
          .make =
              [=](const Target& target) {
                return LoadedMatrix{.matrix = drawn(from, form, target.device), .read = {}};
              }};
}

}  // namespace braid
