// Random weights are made on the GPU that they are for, and are those that the CPU makes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "on_gpu.h"
#include "weights/sources/recipe.h"

namespace braid::synthetic_test {

using SyntheticOnGpu = OnGpu;

TEST_F(SyntheticOnGpu, AreMadeThereWithTheSameBits) {
  const SyntheticValues values;
  const std::vector<Wanted> shares = {{.rows = {{0, 300}}, .columns = {}},
                                      {.rows = {{7, 20}, {200, 50}}, .columns = {}},
                                      {.rows = {{0, 300}}, .columns = {{5, 90}, {4000, 96}}}};
  for (const auto form :
       {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic})
    for (const auto dtype : {at::kFloat, at::kBFloat16})
      for (const auto& wanted : shares) {
        const auto recipe = recipe_of_synthetic({.values = &values,
                                                 .path = "a.weight",
                                                 .shape = {300, 4096},
                                                 .wanted = wanted,
                                                 .dtype = dtype},
                                                form);
        const auto want = recipe.make(at::kCPU).matrix, got = recipe.make(gpu()).matrix;
        EXPECT_EQ(got.values_NC.device(), gpu()) << dtype << " " << int(form);
        EXPECT_TRUE(at::equal(got.values_NC.cpu(), want.values_NC)) << dtype << " " << int(form);
        if (form == Quantize::kNone) continue;
        EXPECT_EQ(got.scales_N1.device(), gpu());
        EXPECT_TRUE(at::equal(got.scales_N1.cpu(), want.scales_N1)) << dtype << " " << int(form);
      }
}

}  // namespace braid::synthetic_test
