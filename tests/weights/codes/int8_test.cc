// Codes and scales: torchao's own, corner cases of the formula, and shares.
#include "weights/codes/int8.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "weights/files/checkpoint.h"

namespace braid::int8_test {

Tensor stored(const std::string& version, const std::string& name) {
  const auto path = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/int8" /
                    (version + ".safetensors");
  static std::map<std::string, Checkpoint> files;
  const auto file = files.try_emplace(version, Checkpoint::open_file(path)).first;
  return file->second.find(name)->view();
}

struct Golden {
  std::string version, dtype_name;
  at::ScalarType dtype;
  Quantize form;
};

class Torchao : public testing::TestWithParam<Golden> {};

TEST_P(Torchao, MakesTheSameCodesAndScales) {
  const auto& g = GetParam();
  const auto got = quantize_rows(stored(g.version, "weights").to(g.dtype), g.form);
  EXPECT_TRUE(at::equal(got.values_NC, stored(g.version, g.dtype_name + ".codes")));
  const auto scales = stored(g.version, g.dtype_name + ".scales");
  EXPECT_EQ(got.scales_N1.scalar_type(), scales.scalar_type());
  EXPECT_TRUE(at::equal(got.scales_N1, scales));
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, Torchao,
    testing::Values(Golden{"v2", "float32", at::kFloat, Quantize::kInt8},
                    Golden{"v2", "bfloat16", at::kBFloat16, Quantize::kInt8},
                    Golden{"v2", "bfloat16", at::kBFloat16, Quantize::kInt8Dynamic},
                    Golden{"v1", "float32", at::kFloat, Quantize::kInt8V1},
                    Golden{"v1", "bfloat16", at::kBFloat16, Quantize::kInt8V1}),
    [](const auto& info) {
      return info.param.version + info.param.dtype_name + std::to_string(int(info.param.form));
    });

// The formula for one number at a time, in float32.
TEST(Int8, EqualsTheFormula) {
  const auto w = at::randn({7, 33}, at::kFloat) * 0.3;
  const auto got = quantize_rows(w, Quantize::kInt8);
  for (int row = 0; row < 7; ++row) {
    float largest = 0;
    for (int i = 0; i < 33; ++i) largest = std::max(largest, std::abs(w[row][i].item<float>()));
    const float scale = largest / 127.5f, inverse = 1 / scale;
    EXPECT_EQ(got.scales_N1[row][0].item<float>(), scale);
    for (int i = 0; i < 33; ++i) {
      const float code = std::nearbyint(w[row][i].item<float>() * inverse);  // half to even
      EXPECT_EQ(got.values_NC[row][i].item<int>(), int(std::clamp(code, -128.f, 127.f)));
    }
  }
}

TEST(Int8, RoundsHalfToEvenAndClampsTheExtremes) {
  const auto w = at::tensor({127.5f, -127.5f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 63.75f}).view({1, 8});
  const auto got = quantize_rows(w, Quantize::kInt8);
  EXPECT_EQ(got.scales_N1.item<float>(), 1);
  EXPECT_TRUE(at::equal(got.values_NC,
                        at::tensor({127, -128, 0, 2, 2, 0, -2, 64}, at::kChar).view({1, 8})));
}

TEST(Int8, ARowOfZerosHasTheSmallestScale) {
  const auto got = quantize_rows(at::zeros({1, 4}, at::kFloat), Quantize::kInt8);
  EXPECT_EQ(got.scales_N1.item<float>(), std::numeric_limits<float>::epsilon());
  EXPECT_FALSE(got.values_NC.any().item<bool>());
}

// bfloat16 is tried, too, whose scales of version 1 are as small, and 8-bit floats.
TEST(CodesOfZeros, AreZerosInEveryFormAndDtype) {
  for (const auto form :
       {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic, Quantize::kFloat8})
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      auto rows = at::randn({3, 40}).to(dtype);
      rows[1].zero_();
      const auto codes = quantize_rows(rows, form);
      const auto scale = codes.scales_N1[1].item<double>();
      EXPECT_GT(scale, 0) << int(form) << dtype;
      EXPECT_TRUE(std::isfinite(1 / scale)) << int(form) << dtype;
      const auto back = dequantize(codes, at::kFloat);
      EXPECT_FALSE(back[1].ne(0).any().item<bool>()) << int(form) << dtype;
      EXPECT_TRUE(back.isfinite().all().item<bool>()) << int(form) << dtype;
    }
}

// Its numbers cannot be told from each other any more, so none of them passes for one.
TEST(CodesOfInfinity, AreLostInItsRowAlone) {
  for (const auto form :
       {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic, Quantize::kFloat8})
    for (const float number : {INFINITY, -INFINITY, NAN}) {
      const auto rows = at::randn({3, 40});
      auto odd = rows.clone();
      odd[1][39] = number;
      const auto want = dequantize(quantize_rows(rows, form), at::kFloat);
      auto got = dequantize(quantize_rows(odd, form), at::kFloat);
      EXPECT_FALSE(got[1].isfinite().any().item<bool>()) << int(form) << " " << number;
      got[1] = want[1];
      EXPECT_TRUE(at::equal(got, want)) << int(form) << " " << number;
    }
}

TEST(Int8, IsOffByHalfAStepAtMostButForTheLargest) {
  const auto w = at::randn({64, 300}, at::kFloat);
  const auto q = quantize_rows(w, Quantize::kInt8);
  const auto error = (dequantize(q, at::kFloat) - w).abs() / q.scales_N1;
  EXPECT_LE(error.max().item<float>(), 0.5001);
}

TEST(Int8, RefusesToQuantizeToNoForm) {
  EXPECT_ANY_THROW(quantize_rows(at::zeros({1, 1}), Quantize::kNone));
}

}  // namespace braid::int8_test
