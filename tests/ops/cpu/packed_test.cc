// Weights kept as stored multiply like the numbers they decode to.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ops/cpu/linear.h"
#include "ops/cpu/packed.h"
#include "ops/kernels/blocks.h"
#include "ops/ops.h"
#include "random_blocks.h"
#include "weights/codes/blocks.h"
#include "weights/codes/int8.h"

namespace braid::packed_test {

const ElementType kKept[] = {ElementType::kQ4_0,       ElementType::kQ4_1,      ElementType::kQ5_0,
                             ElementType::kQ5_1,       ElementType::kQ8_0,      ElementType::kQ2_K,
                             ElementType::kQ3_K,       ElementType::kQ4_K,      ElementType::kQ5_K,
                             ElementType::kQ6_K,       ElementType::kIq4Nl,     ElementType::kIq4Xs,
                             ElementType::kFloat8E4M3, ElementType::kFloat8E5M2};

TEST(PackedMatrix, LoopsDecodeAsTheDefinitionDoes) {
  for (const auto type : kKept) {
    for (const auto& matrix :
         {coded(type, 5, 1024), wanting(coded(type, 5, 1024), {{3, 300}, {512, 7}, {700, 324}})})
      for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        const auto out = at::empty({5, matrix.inputs()}, dtype);
        ops::decode_on_cpu(matrix, out);
        EXPECT_TRUE(at::equal(out, dequantize(matrix, dtype)))
            << element_type_name(type) << " " << dtype;
      }
  }
}

TEST(PackedMatrix, EveryFloat8IsTheNumberThatLibTorchMakesOfIt) {
  const auto all = at::arange(256, at::kByte);
  for (const auto& [decode, dtype] :
       {std::pair(ops::block_kernels().to_float32.e4m3, at::kFloat8_e4m3fn),
        std::pair(ops::block_kernels().to_float32.e5m2, at::kFloat8_e5m2)}) {
    const auto out = at::empty({256}, at::kFloat);
    decode(all.const_data_ptr<std::uint8_t>(), 256, 1, out.mutable_data_ptr<float>());
    EXPECT_TRUE(at::allclose(out, all.view(dtype).to(at::kFloat), 0, 0, /*equal_nan=*/true));
  }
}

TEST(PackedMatrix, MultiplyAsTheirNumbersDo) {
  Scratch scratch;
  for (const auto type : kKept)
    for (const std::int64_t tokens : {1, 3, 40})
      for (const auto dtype : {at::kBFloat16, at::kFloat, at::kHalf}) {
        const auto matrix = wanting(coded(type, 70, 1024), {{0, 256}, {300, 500}});
        const auto x = at::randn({2, tokens, matrix.inputs()}).to(dtype);
        const auto bias = at::randn({70}).to(dtype);
        const Matrix numbers{.values_NC = dequantize(matrix, dtype)};
        EXPECT_TRUE(at::equal(ops::linear(x, matrix, bias, scratch),
                              ops::linear(x, numbers, bias, scratch)))
            << element_type_name(type) << " " << tokens << " " << dtype;
        if (dtype != at::kBFloat16) continue;
        EXPECT_TRUE(at::equal(ops::cpu::linear(x, matrix, bias, ops::cpu::Finish::kGelu),
                              ops::cpu::linear(x, numbers, bias, ops::cpu::Finish::kGelu)))
            << element_type_name(type) << " " << tokens << " by products of our own";
      }
}

}  // namespace braid::packed_test
