// Operations on a matrix apply to all of its tensors.
#include "weights/matrix.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

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

TEST(Matrix, MovesWithItsScales) {
  const auto moved = to(some_codes(), at::kMeta, Blocking::kNo);
  EXPECT_TRUE(moved.values_NC.is_meta());
  EXPECT_TRUE(moved.scales_N1.is_meta());
  EXPECT_EQ(moved.form, Quantize::kInt8);
}

// Counts conversions of tensors, and blocking ones, while it lives.
class CountCopies {
 public:
  CountCopies() {
    all_ = blocking_ = 0;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& f)
                                       -> std::unique_ptr<at::ObserverContext> {
          if (std::string(f.name()) == "aten::to") {
            ++all_;
            // to(..., non_blocking, copy, memory_format), any overload
            blocking_ += !f.inputs()[f.inputs().size() - 3].toBool();
          }
          return nullptr;
        }).needsInputs(true));
  }
  ~CountCopies() { at::removeCallback(handle_); }
  int all() const { return all_; }
  int blocking() const { return blocking_; }

 private:
  static inline thread_local int all_, blocking_;
  at::CallbackHandle handle_;
};

TEST(Matrix, TellsEveryCopyWhetherToWait) {
  const auto matrix = some_codes();
  const CountCopies count;
  to(matrix, at::kMeta, Blocking::kNo);
  EXPECT_EQ(count.all(), 2);
  EXPECT_EQ(count.blocking(), 0);
  to(matrix, at::kMeta, Blocking::kYes);
  EXPECT_EQ(count.all(), 4);
  EXPECT_EQ(count.blocking(), 2);
}

// A CPU has no streams and pins nothing: these record the calls instead.
std::vector<void*>& pinned_tensors() {
  static std::vector<void*> tensors;
  return tensors;
}
std::vector<void*>& recorded_tensors() {
  static std::vector<void*> tensors;
  return tensors;
}
Tensor note_pinned(const Tensor& tensor, std::optional<at::Device>) {
  pinned_tensors().push_back(tensor.data_ptr());
  return tensor.clone();
}
void note_recorded(Tensor& tensor, at::Stream) { recorded_tensors().push_back(tensor.data_ptr()); }

TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("pin_memory", note_pinned);
  m.impl("record_stream", note_recorded);
}

TEST(Matrix, IsPinnedWithItsScales) {
  const auto matrix = some_codes();
  pinned_tensors().clear();
  const auto copy = pinned(matrix);
  EXPECT_THAT(pinned_tensors(), testing::UnorderedElementsAre(matrix.values_NC.data_ptr(),
                                                              matrix.scales_N1.data_ptr()));
  EXPECT_NE(copy.values_NC.data_ptr(), matrix.values_NC.data_ptr());
  EXPECT_NE(copy.scales_N1.data_ptr(), matrix.scales_N1.data_ptr());
}

TEST(Matrix, IsRecordedOnAStreamWithItsScales) {
  const auto matrix = some_codes();
  recorded_tensors().clear();
  record_stream(matrix, c10::Stream(c10::Stream::DEFAULT, at::kCPU));
  EXPECT_THAT(recorded_tensors(), testing::UnorderedElementsAre(matrix.values_NC.data_ptr(),
                                                                matrix.scales_N1.data_ptr()));
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

TEST(Matrix, IsVisitedPinnedAndMovedInAllItsTensors) {
  auto matrix = of_six_tensors();
  std::vector<void*> visited;
  for_each_tensor(matrix, [&](const Tensor& x) { visited.push_back(x.data_ptr()); });
  std::vector<void*> named;
  for (const auto which : kAll) named.push_back(tensor_of(matrix, which).data_ptr());
  EXPECT_EQ(visited, named) << "in the order of MatrixTensor, as pages have them";
  pinned_tensors().clear();
  (void)pinned(matrix);
  EXPECT_THAT(pinned_tensors(), testing::ElementsAreArray(named));
  auto moved = to(matrix, at::kMeta, Blocking::kNo);
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

TEST(Matrix, ColumnsKeepTheScalesOfWholeRows) {
  const auto whole = some_codes();
  const auto columns = columns_of(whole, 1, 2);
  EXPECT_TRUE(
      at::equal(dequantize(columns, at::kFloat), dequantize(whole, at::kFloat).narrow(1, 1, 2)));
}

}  // namespace braid::matrix_test
