// Which of LibTorch's kernels are asked for, told by what the GPUs of fake_gpu.cc were asked.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_gpu.h"
#include "message_of.h"
#include "on_gpu.h"
#include "ops/attention_kernel.h"
#include "ops/ops.h"
#include "pipeline/deployment/deployment.h"
#include "pipeline/devices/devices.h"
#include "weights/codes/int8.h"

namespace braid::fake_kernels_test {

using ops::AttentionKernel;

const at::Device kGpu(at::kCUDA, 0);

TEST(FakeKernels, AreMissedBeforeAModelIsLoaded) {
  EXPECT_EQ(find_device("cuda:0"), kGpu);
  const fake_gpu::IsOlder old(75);
  EXPECT_THAT(message_of([] { find_device("cuda:0"); }), testing::HasSubstr("sm_75"));
  EXPECT_THAT(message_of([] {
                deploy({.pipeline = {.model = BRAID_SOURCE_DIR "/models/demo", .device = "cuda"}});
              }),
              testing::HasSubstr("sm_75"));
}

TEST(FakeKernels, AttentionOverPartsOfTheKeysTakesCudnnWhereAttentionDoes) {
  const auto q = at::randn({2, 4, 33, 64}, at::kFloat).to(at::kBFloat16);
  const auto k = at::randn({2, 4, 21, 64}, at::kFloat).to(at::kBFloat16);
  const auto want = ops::attention_with_lse(q, k, k);
  const auto got = [&] { return ops::attention_with_lse(q.to(kGpu), k.to(kGpu), k.to(kGpu)); };
  EXPECT_NE(ops::attention_kernel_on(kGpu), AttentionKernel::kCudnn);
  const auto before = fake_gpu::num_cudnn_attentions();
  (void)got();
  EXPECT_EQ(fake_gpu::num_cudnn_attentions(), before);
  const fake_gpu::Attends attends(ops::AttentionKernel::kCudnn);
  EXPECT_EQ(ops::attention_kernel_on(kGpu), AttentionKernel::kCudnn);
  const auto part = got();
  EXPECT_EQ(fake_gpu::num_cudnn_attentions(), before + 1);
  EXPECT_TRUE(at::allclose(part.lse_BHL.cpu(), want.lse_BHL, 0, 2e-2));
  EXPECT_TRUE(
      at::allclose(part.out_BHLD.cpu().to(at::kFloat), want.out_BHLD.to(at::kFloat), 0, 0.05));
}

TEST(FakeKernels, SayWhyItIsNotCudnn) {
  EXPECT_EQ(ops::described(AttentionKernel::kCudnn, 90), "cuDNN");
  EXPECT_EQ(ops::described(AttentionKernel::kFlash, 89), "FlashAttention 2");
  EXPECT_EQ(ops::described(AttentionKernel::kFlash, 0), "FlashAttention 2") << "AMD's";
  for (const int capability : {90, 100, 103})
    EXPECT_NE(ops::described(AttentionKernel::kFlash, capability).find("9.15.1"),
              std::string::npos);
}

TEST(FakeKernels, GeluIsAppliedByTheProductWhereTheLibraryCan) {
  const auto products_of = [&](at::ScalarType dtype, const Matrix& w, bool has_bias = true) {
    const auto x = at::randn({2, 5, 32}, at::kFloat).to(dtype).to(kGpu);
    const auto bias =
        has_bias ? std::optional(at::randn({48}, at::kFloat).to(dtype).to(kGpu)) : std::nullopt;
    Scratch scratch;
    const auto before = fake_gpu::num_gelu_products();
    EXPECT_EQ(ops::linear_gelu(x, w, bias, scratch).sizes(), at::IntArrayRef({2, 5, 48}));
    return fake_gpu::num_gelu_products() - before;
  };
  const auto w = at::randn({48, 32}, at::kFloat);
  const auto numbers = [&](at::ScalarType dtype) {
    return Matrix{.values_NC = w.to(dtype).to(kGpu)};
  };
  EXPECT_EQ(products_of(at::kBFloat16, numbers(at::kBFloat16)), 1);
  EXPECT_EQ(products_of(at::kHalf, numbers(at::kHalf)), 1);
  EXPECT_EQ(products_of(at::kFloat, numbers(at::kFloat)), 0);
  EXPECT_EQ(products_of(at::kBFloat16, numbers(at::kBFloat16), false), 0);
  const auto codes = on_device(quantize_rows(w, Quantize::kInt8), kGpu);
  EXPECT_EQ(products_of(at::kBFloat16, codes), 0);
}

TEST(FakeKernels, Float8IsMultipliedWhereTheGpuCan) {
  const auto x = at::randn({5, 32}, at::kFloat).to(at::kBFloat16).to(kGpu);
  const auto products_of = [&](at::ScalarType dtype, std::int64_t outputs) {
    const auto w = quantize_rows(at::randn({outputs, 32}, at::kFloat), Quantize::kFloat8);
    Scratch scratch;
    const auto before = fake_gpu::num_float8_products();
    (void)ops::linear(x.to(dtype), on_device(w, kGpu), {}, scratch);
    return fake_gpu::num_float8_products() - before;
  };
  EXPECT_EQ(products_of(at::kBFloat16, 48), 1);
  EXPECT_EQ(products_of(at::kBFloat16, 40), 0) << "no width that a product takes";
  EXPECT_EQ(products_of(at::kFloat, 48), 0);
  const fake_gpu::IsOlder older;
  EXPECT_EQ(products_of(at::kBFloat16, 48), 0);
}

}  // namespace braid::fake_kernels_test
