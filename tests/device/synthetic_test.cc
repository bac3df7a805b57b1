// Random weights are made on the GPU that they are for, and are those that the CPU makes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "on_gpu.h"
#include "weights/sources/tensor_plan.h"

namespace braid::synthetic_test {

using SyntheticOnGpu = OnGpu;

TEST_F(SyntheticOnGpu, AreMadeThereWithTheSameBits) {
  const auto values = std::make_shared<const SyntheticValues>();
  const std::vector<Shard> shards = {{.rows = {{0, 300}}},
                                     {.rows = {{7, 20}, {200, 50}}},
                                     {.rows = {{0, 300}}, .columns = {{5, 90}, {4000, 96}}}};
  for (const auto form :
       {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic})
    for (const auto dtype : {at::kFloat, at::kBFloat16})
      for (const auto& shard : shards) {
        const TensorPlan plan{.from = DrawnRows{values, "a.weight"},
                              .shape = {300, 4096},
                              .shard = shard,
                              .dtype = dtype,
                              .form = form};
        const auto want = make(plan, at::kCPU).matrix, got = make(plan, gpu()).matrix;
        EXPECT_EQ(got.values_NC.device(), gpu()) << dtype << " " << int(form);
        EXPECT_TRUE(at::equal(got.values_NC.cpu(), want.values_NC)) << dtype << " " << int(form);
        if (form == Quantize::kNone) continue;
        EXPECT_EQ(got.scales_N1.device(), gpu());
        EXPECT_TRUE(at::equal(got.scales_N1.cpu(), want.scales_N1)) << dtype << " " << int(form);
      }
}

}  // namespace braid::synthetic_test
