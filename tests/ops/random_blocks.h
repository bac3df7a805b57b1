// Random matrices as a file stores them: in blocks or in float8.
#pragma once

#include <ATen/ATen.h>

#include "weights/matrix.h"

namespace braid {

// Where a block has float16 numbers; random bits there might be NaN.
inline std::vector<std::int64_t> places_of_halves(ElementType type) {
  switch (type) {
    case ElementType::kQ4_1:
    case ElementType::kQ5_1:
    case ElementType::kQ4_K:
    case ElementType::kQ5_K:
      return {0, 2};
    case ElementType::kQ2_K:
      return {80, 82};
    case ElementType::kQ3_K:
      return {108};
    case ElementType::kQ6_K:
      return {208};
    case ElementType::kFloat8E4M3:
    case ElementType::kFloat8E5M2:
      return {};
    default:
      return {0};
  }
}

// Random codes of [rows columns] numbers.
inline Matrix coded(ElementType type, std::int64_t rows, std::int64_t columns) {
  const auto block = block_of(type);
  auto bytes = at::randint(0, 256, {rows, columns / block.numbers, block.bytes}, at::kByte);
  if (is_float8(type)) bytes = bytes.bitwise_and(0x80 | 0x3f);  // no infinities
  for (const auto place : places_of_halves(type))
    bytes.narrow(2, place, 2)
        .copy_((at::randn({rows, columns / block.numbers, 1}) * 0.02)
                   .to(at::kHalf)
                   .view(at::kByte)
                   .view({rows, columns / block.numbers, 2}));
  Matrix matrix{.values_NC = bytes.view({rows, -1}).contiguous()};
  if (is_float8(type)) matrix.scales_N1 = at::rand({rows, 1}) * 0.1;
  matrix.coding = std::make_shared<const QuantFormat>(QuantFormat{.type = type, .inputs = columns});
  return matrix;
}

// The same matrix with only runs of its columns wanted.
inline Matrix wanting(const Matrix& matrix, const std::vector<Share>& columns) {
  auto some = matrix;
  QuantFormat coding{.type = matrix.coding->type, .inputs = 0, .columns = columns};
  for (const auto& run : columns) coding.inputs += run.count;
  some.coding = std::make_shared<const QuantFormat>(coding);
  return some;
}

}  // namespace braid
