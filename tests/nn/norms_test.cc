// Norms with their weights, one number at a time in float64: where eps decides, and their dtypes.
#include "nn/norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "temporary_folder.h"
#include "weights/files/safetensors_writer.h"

namespace braid::norms_test {

constexpr std::int64_t kWidth = 12;

class Norms : public testing::TestWithParam<double> {
 protected:
  Norms() {
    const std::map<std::string, Tensor> stored = {{"weight", weight_}, {"bias", bias_}};
    write_file(folder_ / "m.safetensors", write_safetensors(stored));
  }
  Weights open(at::ScalarType dtype) const {
    return {Checkpoint::open(folder_.path(), "m"), {}, {.dtype = dtype}};
  }
  static double eps() { return GetParam(); }
  // Rows of deviation 1, of about sqrt(eps), of far less, and of zeros.
  static Tensor rows() {
    const auto scales = at::tensor({1., std::sqrt(eps()), eps(), 0.}, at::kDouble);
    return (at::randn({4, kWidth}, at::kDouble) * scales.unsqueeze(1)).to(at::kFloat);
  }
  enum class Mean { kKept, kSubtracted };
  void expect_formula(const Tensor& got, const Tensor& x, Mean of_row, double limit = 1e-6) const {
    for (std::int64_t l = 0; l < x.size(0); ++l) {
      const auto number = [&](std::int64_t c) { return x[l][c].item<double>(); };
      double mean = 0, squares = 0;
      for (std::int64_t c = 0; c < kWidth && of_row == Mean::kSubtracted; ++c)
        mean += number(c) / kWidth;
      for (std::int64_t c = 0; c < kWidth; ++c) squares += std::pow(number(c) - mean, 2) / kWidth;
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const double bias = of_row == Mean::kSubtracted ? bias_[c].item<double>() : 0;
        const double want =
            (number(c) - mean) / std::sqrt(squares + eps()) * weight_[c].item<double>() + bias;
        EXPECT_NEAR(got[l][c].item<double>(), want, limit * (1 + std::abs(want))) << l;
      }
    }
  }

  const Tensor weight_ = at::randn({kWidth}), bias_ = at::randn({kWidth});
  TemporaryFolder folder_;
};

TEST_P(Norms, OfLayersAreTheFormula) {
  const auto x = rows();
  expect_formula(LayerNorm(open(at::kFloat), kWidth, eps())(x), x, Mean::kSubtracted);
}

TEST_P(Norms, OfRootMeanSquaresAreTheFormula) {
  const auto x = rows();
  expect_formula(RmsNorm(open(at::kFloat), kWidth, eps())(x), x, Mean::kKept);
  expect_formula(LlamaRmsNorm(open(at::kFloat), kWidth, eps())(x), x, Mean::kKept);
}

// T5's last layers return float32 to a model in float16, whose squares would overflow there.
TEST_P(Norms, OfFloat32UnderFloat16WeightsTakeTheirMeanInFloat32) {
  const auto x = 1000 * at::randn({4, kWidth});
  const auto got = RmsNorm(open(at::kHalf), kWidth, eps())(x);
  EXPECT_EQ(got.scalar_type(), at::kHalf);
  expect_formula(got, x, Mean::kKept, 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Eps, Norms, testing::Values(1e-5, 1e-6, 1e-3));

}  // namespace braid::norms_test
