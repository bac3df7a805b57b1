// Does what gpu_kernels_test.cc does for the kernel that decodes weights as a file has them: bit
// for bit the definition.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "kernel_device.h"
#include "ops/gpu/gpu.h"
#include "random_blocks.h"
#include "weights/codes/int8.h"

namespace braid::gpu_blocks_test {

namespace gpu = ops::gpu;

class GpuBlocks : public testing::TestWithParam<ElementType> {
 protected:
  void SetUp() override {
    if (!kernel_device()) GTEST_SKIP() << "there is no GPU";
    at::manual_seed(3);
  }

  static void expect_decoded(const Matrix& matrix) {
    const auto rows = matrix.values_NC.size(0);
    const auto there =
        map_tensors(matrix, [](const Tensor& tensor) { return tensor.to(*kernel_device()); });
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
      // A NaN before the first number and after the last one must stay.
      const auto memory = at::full({rows * matrix.inputs() + 2}, NAN,
                                   at::TensorOptions(dtype).device(*kernel_device()));
      const auto out = memory.narrow(0, 1, rows * matrix.inputs()).view({rows, matrix.inputs()});
      gpu::decode(there, out);
      EXPECT_TRUE(at::equal(out.cpu(), dequantize(matrix, dtype))) << dtype << " " << out.sizes();
      EXPECT_TRUE(memory[0].isnan().item<bool>() && memory[-1].isnan().item<bool>());
    }
  }
};

// There is from one block up to several of a kernel's blocks of threads, which hold 16 of them.
TEST_P(GpuBlocks, AreDecodedAsTheDefinitionDoes) {
  const auto block = is_float8(GetParam()) ? 17 : block_of(GetParam()).numbers;
  for (const std::int64_t blocks : {1, 2, 3, 15, 16, 17, 40})
    for (const std::int64_t rows : {1, 3, 7})
      expect_decoded(coded(GetParam(), rows, blocks * block));
}

TEST_P(GpuBlocks, OfRunsOfColumnsAreDecodedWithinBlocksToo) {
  const auto whole = coded(GetParam(), 5, 1024);
  const std::vector<std::vector<Share>> runs = {{{0, 1024}},
                                                {{1, 1}},
                                                {{255, 2}},
                                                {{3, 300}, {512, 7}, {700, 324}},
                                                {{256, 256}, {0, 0}, {31, 33}, {1023, 1}}};
  for (const auto& columns : runs) expect_decoded(wanting(whole, columns));
}

// Rows of a larger matrix, at any address, each row of blocks with a scale of its own.
TEST_P(GpuBlocks, MayLieAnywhereAndHaveScalesOfRows) {
  auto matrix = coded(GetParam(), 9, 768);
  matrix.scales_N1 = at::rand({9, 1}) + 0.5;
  for (const std::int64_t first : {1, 4}) expect_decoded(rows_of(matrix, first, 5));
  const auto bytes = matrix.values_NC;
  const auto memory = at::empty({bytes.numel() + 5}, at::kByte);
  for (const std::int64_t offset : {1, 2, 5}) {
    matrix.values_NC = memory.narrow(0, offset, bytes.numel()).view(bytes.sizes());
    matrix.values_NC.copy_(bytes);
    expect_decoded(matrix);
  }
}

// Scales that are subnormal, infinite or NaN in float16.
TEST_P(GpuBlocks, OfAnyBitsAreDecodedAsTheDefinitionDoes) {
  const auto block = block_of(GetParam());
  auto matrix = coded(GetParam(), 64, is_float8(GetParam()) ? 129 : 8 * block.numbers);
  matrix.values_NC = at::randint(0, 256, matrix.values_NC.sizes(), at::kByte);
  const auto want = dequantize(matrix, at::kFloat);
  const auto out = at::empty_like(want, at::TensorOptions(*kernel_device()));
  const auto there =
      map_tensors(matrix, [](const Tensor& tensor) { return tensor.to(*kernel_device()); });
  gpu::decode(there, out);
  EXPECT_TRUE(at::allclose(out.cpu(), want, 0, 0, /*equal_nan=*/true));
}

INSTANTIATE_TEST_SUITE_P(Types, GpuBlocks,
                         testing::Values(ElementType::kQ4_0, ElementType::kQ4_1, ElementType::kQ5_0,
                                         ElementType::kQ5_1, ElementType::kQ8_0, ElementType::kQ2_K,
                                         ElementType::kQ3_K, ElementType::kQ4_K, ElementType::kQ5_K,
                                         ElementType::kQ6_K, ElementType::kIq4Nl,
                                         ElementType::kIq4Xs, ElementType::kFloat8E4M3,
                                         ElementType::kFloat8E5M2),
                         [](const auto& info) { return element_type_name(info.param); });

}  // namespace braid::gpu_blocks_test
