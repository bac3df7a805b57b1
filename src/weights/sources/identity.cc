#include "weights/sources/identity.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "base/error.h"
#include "base/hexadecimal.h"
#include "weights/codes/as_stored.h"
#include "weights/codes/blocks.h"
#include "weights/codes/int8.h"
#include "weights/paging/checksum.h"

namespace braid {
namespace {

constexpr std::int64_t kPart = std::int64_t(4) << 20;  // bytes a thread reads at once

// Combines the checksums of all parts; read(begin, size) returns that of one.
template <class Read>
std::string digest_of_parts(std::int64_t size, Read read) {
  std::vector<std::uint64_t> sums(std::size_t((size + kPart - 1) / kPart));
  at::parallel_for(0, std::int64_t(sums.size()), 1, [&](std::int64_t first, std::int64_t last) {
    for (auto part = first; part < last; ++part)
      sums[std::size_t(part)] = read(part * kPart, std::min(kPart, size - part * kPart));
  });
  return hex_digits(checksum(std::as_bytes(std::span(sums)), std::uint64_t(size)));
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()),
          std::size_t(tensor.numel()) * tensor.element_size()};
}

std::string identity_of(const RowRange& range) {
  const auto& file = *range.stored->file;
  const auto [first, size] = bytes_of(range);
  const auto said =
      digest_of_parts(std::int64_t(size), [&, first = first](std::int64_t at, std::int64_t count) {
        const auto offset = first + std::uint64_t(at);
        file.prefetch(offset, std::uint64_t(count));
        const auto sum = checksum(file.bytes().subspan(offset, std::size_t(count)));
        file.release(offset, std::uint64_t(count));
        return sum;
      });
  const auto row = size / std::uint64_t(std::max<std::int64_t>(1, range.rows.count));
  auto words = text_of(element_type_name(range.stored->entry.type), " ", row, " x ",
                       range.rows.count, " ", said);
  if (range.stored->arrangement == Arrangement::kTiles) words += " in tiles";
  if (range.stored->rotated_together)
    words += text_of(" rotated by ", range.stored->rotated_together);
  if (const auto& packed = range.stored->packed) {
    words += text_of(" in ", packed->form->name);
    for (std::size_t i = 1; i < packed->tensors.size(); ++i)
      words += " with " + identity_of(packed_range(range, i));
  }
  if (!range.stored->scales) return words;
  words += " times " + identity_of(scales_of(range));
  if (range.stored->scales->arrangement == Arrangement::kSquares)
    words += text_of(" in squares from row ", range.rows.begin % kSquareSide);
  return words;
}

}  // namespace

std::string digest(std::span<const std::byte> bytes) {
  return digest_of_parts(std::int64_t(bytes.size()), [&](std::int64_t at, std::int64_t count) {
    return checksum(bytes.subspan(std::size_t(at), std::size_t(count)));
  });
}

std::string identity_of(const RowRanges& ranges) {
  std::string words;
  for (const auto& range : ranges) words += identity_of(range) + "; ";
  return words;
}

std::string identity_of(const std::vector<StoredTensor>& stored) {
  RowRanges ranges;
  for (const auto& one : stored)
    ranges.push_back(all_rows(std::make_shared<const StoredTensor>(one)));
  return identity_of(ranges);
}

std::string identity_of(const std::vector<Share>& columns) {
  std::string words;
  for (const auto& share : columns) words += text_of(" ", share.begin, "+", share.count);
  return words.empty() ? words : "columns" + words;
}

std::string identity_of(Quantize form, at::ScalarType dtype) {
  // integers times a power of two: the same on every machine
  const auto known = (at::arange(16 * 64, at::kLong) * 40503 % 65536 - 32768).view({16, 64});
  const auto made = quantize_rows((known.to(at::kFloat) / 4096).to(dtype), form);
  return text_of("form ", int(form), " of ", dtype, " ", digest(bytes_of(made.values_NC)), " ",
                 digest(bytes_of(made.scales_N1)));
}

PageSource source_of(const Tensor& tensor) {
  return {.tensors = {{tensor.scalar_type(), tensor.sizes().vec()}},
          .identity = [tensor] { return digest(bytes_of(tensor.contiguous())); },
          .make = [tensor] { return std::vector<Tensor>{tensor}; }};
}

}  // namespace braid
