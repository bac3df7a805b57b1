// Float8 codes: torchao's own, and corner cases of the formula.
#include "weights/codes/float8.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "weights/codes/int8.h"
#include "weights/files/checkpoint.h"

namespace braid::float8_test {

Tensor stored(const std::string& name) {
  const auto path =
      std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity/float8/rows.safetensors";
  static const auto file = Checkpoint::open_file(path);
  return file.find(name)->view();
}

TEST(Float8, CodesAndScalesAreTorchaos) {
  for (const auto& [name, dtype] :
       {std::pair("float32", at::kFloat), {"bfloat16", at::kBFloat16}}) {
    const auto got = quantize_rows(stored("weights").to(dtype), Quantize::kFloat8);
    EXPECT_EQ(got.form, Quantize::kFloat8);
    EXPECT_EQ(got.inputs(), 64);
    EXPECT_TRUE(at::equal(got.values_NC, stored(std::string(name) + ".codes"))) << name;
    EXPECT_TRUE(at::equal(got.scales_N1, stored(std::string(name) + ".scales"))) << name;
  }
}

TEST(Float8, CodesTimesScalesAreNearTheNumbers) {
  const auto w = at::randn({9, 70}, at::kFloat);
  const auto codes = quantize_rows(w, Quantize::kFloat8);
  const auto error = ((dequantize(codes, at::kFloat) - w).abs() / w.abs().amax(1, true)).max();
  EXPECT_LE(error.item<double>(), 16.0 / 448 + 1e-6) << "codes of 256 to 448 are 32 apart";
  EXPECT_GT(error.item<double>(), 1e-3);
}

TEST(Float8, ARowOfZerosStaysSo) {
  const auto codes = quantize_rows(at::zeros({2, 16}, at::kFloat), Quantize::kFloat8);
  EXPECT_EQ(dequantize(codes, at::kFloat).abs().sum().item<float>(), 0);
  EXPECT_GT(codes.scales_N1.min().item<float>(), 0);
}

TEST(Float8, SharesOfRowsAndColumnsAreOfTheWhole) {
  const auto w = at::randn({6, 32}, at::kFloat);
  const auto whole = quantize_rows(w, Quantize::kFloat8);
  auto share = rows_of(whole, 2, 3);
  share.values_NC = share.values_NC.narrow(1, 5, 11);
  EXPECT_EQ(share.inputs(), 11);
  EXPECT_TRUE(at::equal(dequantize(share, at::kFloat),
                        dequantize(whole, at::kFloat).narrow(0, 2, 3).narrow(1, 5, 11)));
}

}  // namespace braid::float8_test
