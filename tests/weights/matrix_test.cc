// Operations on a matrix apply to all of its tensors.
#include "weights/matrix.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "weights/codes/int8.h"

namespace braid::matrix_test {

Matrix some_codes() { return quantize_rows(at::randn({6, 4}, at::kFloat), Quantize::kInt8); }

TEST(Matrix, VisitsEveryTensorThatIsThere) {
  int dense = 0, coded = 0;
  const Matrix numbers{.values_NC = at::zeros({1, 1})}, codes = some_codes();
  for_each_tensor(numbers, [&](const Tensor&) { ++dense; });
  for_each_tensor(codes, [&](const Tensor&) { ++coded; });
  EXPECT_EQ(dense, 1);
  EXPECT_EQ(coded, 2);
}

constexpr MatrixTensor kAll[] = {MatrixTensor::kValues, MatrixTensor::kScales,
                                 MatrixTensor::kZeros,  MatrixTensor::kSmoothing,
                                 MatrixTensor::kDown,   MatrixTensor::kUp};

// 6 rows and 8 columns in groups of 4, and factors of rank 2.
Matrix of_six_tensors() {
  return {.values_NC = at::randn({6, 8}),
          .scales_N1 = at::randn({6, 2}),
          .zeros_NG = at::randn({6, 2}),
          .smoothing_1C = at::randn({1, 8}),
          .down_RC = at::randn({2, 8}),
          .up_NR = at::randn({6, 2})};
}

TEST(Matrix, IsVisitedAndChangedInAllItsTensors) {
  auto matrix = of_six_tensors();
  std::vector<void*> visited;
  for_each_tensor(matrix, [&](const Tensor& x) { visited.push_back(x.data_ptr()); });
  std::vector<void*> named;
  for (const auto which : kAll) named.push_back(tensor_of(matrix, which).data_ptr());
  EXPECT_EQ(visited, named) << "in the order of MatrixTensor, as pages have them";
  auto moved = map_tensors(matrix, [](const Tensor& x) { return x.to(at::kMeta); });
  for (const auto which : kAll) EXPECT_TRUE(tensor_of(moved, which).is_meta());
}

TEST(Matrix, RowsAreOfTheTensorsThatHaveThem) {
  auto whole = of_six_tensors(), rows = rows_of(whole, 1, 3);
  for (const auto which : kAll) {
    const auto& all = tensor_of(whole, which);
    const bool has_rows = cell_of(which).rows > 0;
    EXPECT_TRUE(at::equal(tensor_of(rows, which), has_rows ? all.narrow(0, 1, 3) : all))
        << int(which);
  }
}

TEST(Matrix, RowsKeepTheirScales) {
  const auto whole = some_codes();
  const auto rows = rows_of(whole, 2, 3);
  EXPECT_TRUE(
      at::equal(dequantize(rows, at::kFloat), dequantize(whole, at::kFloat).narrow(0, 2, 3)));
}

}  // namespace braid::matrix_test
