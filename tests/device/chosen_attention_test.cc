// Attention where LibTorch's choice of a kernel is not the one that a data centre GPU has: each
// kernel refuses what it was not chosen for, as LibTorch's do.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include <cmath>

#include "fake_gpu.h"
#include "kernel_counter.h"
#include "on_gpu.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "parallel/ring.h"

namespace braid::chosen_attention_test {

using fake_gpu::CountsKernels;
using ops::AttentionKernel;

struct Case {
  const char* name;
  AttentionKernel kernel;
  at::ScalarType dtype;
  std::int64_t heads, of_keys, queries, keys, width = 32;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

struct Inputs {
  Tensor q, k, v;
};

Inputs draw(std::int64_t heads, std::int64_t of_keys, std::int64_t queries, std::int64_t keys,
            at::ScalarType dtype, std::int64_t width = 32) {
  auto numbers = at::detail::createCPUGenerator(7);
  const auto one = [&](std::int64_t tokens, std::int64_t n) {
    return at::randn({2, tokens, n, width}, numbers, at::kFloat).to(dtype).transpose(1, 2);
  };
  return {one(queries, heads), one(keys, of_keys), one(keys, of_keys)};
}

Tensor there(const Tensor& x) {
  return x.transpose(1, 2).to(at::Device(at::kCUDA, 0)).transpose(1, 2);
}

Tensor exact_scores(const Inputs& x) {
  const auto k = x.k.repeat_interleave(x.q.size(1) / x.k.size(1), 1).to(at::kDouble);
  return x.q.to(at::kDouble).matmul(k.transpose(-1, -2)) / std::sqrt(double(x.q.size(3)));
}

Tensor exact(const Inputs& x, const Tensor& scores) {
  const auto v = x.v.repeat_interleave(x.q.size(1) / x.v.size(1), 1).to(at::kDouble);
  return at::softmax(scores, -1).matmul(v);
}

double largest_error(const Tensor& got, const Tensor& want) {
  return (got.cpu().to(at::kDouble) - want).abs().max().item<double>();
}

// Weights are rounded once and the result once more.
double unit(at::ScalarType dtype) {
  return dtype == at::kFloat ? 2e-6 : dtype == at::kHalf ? 0x1p-9 : 0x1p-6;
}

class ChosenAttention : public OnGpu, public testing::WithParamInterface<Case> {};

// [B H L] by FlashAttention, padded to 32 by the memory-efficient kernel, [B H L 1] by cuDNN.
TEST_P(ChosenAttention, TellsItsLseWhateverIsChosen) {
  const auto& c = GetParam();
  const fake_gpu::Attends attends(c.kernel);
  const auto x = draw(c.heads, c.of_keys, c.queries, c.keys, c.dtype, c.width);
  const auto scores = exact_scores(x);
  const auto part = ops::attention_with_lse(there(x.q), there(x.k), there(x.v));
  EXPECT_EQ(part.lse_BHL.sizes(), at::IntArrayRef({2, c.heads, c.queries}));
  EXPECT_EQ(part.lse_BHL.scalar_type(), at::kFloat);
  EXPECT_LE(largest_error(part.out_BHLD, exact(x, scores)), 3 * unit(c.dtype));
  EXPECT_LE(largest_error(part.lse_BHL, at::logsumexp(scores, -1)),
            c.dtype == at::kFloat ? 1e-5 : 2e-2);
}

TEST_P(ChosenAttention, MergesOverDisjointKeys) {
  const auto& c = GetParam();
  const fake_gpu::Attends attends(c.kernel);
  const auto x = draw(c.heads, c.of_keys, c.queries, c.keys, c.dtype, c.width);
  const auto cut = c.keys / 3 + 1;
  const auto over = [&](std::int64_t begin, std::int64_t count) {
    const auto part = ops::attention_with_lse(there(x.q), there(x.k.narrow(2, begin, count)),
                                              there(x.v.narrow(2, begin, count)));
    return ops::PartialAttention{part.out_BHLD.to(at::kFloat), part.lse_BHL};
  };
  auto merged = over(0, cut);
  merge_into(merged, over(cut, c.keys - cut));
  EXPECT_LE(largest_error(merged.out_BHLD, exact(x, exact_scores(x))), 3 * unit(c.dtype));
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, ChosenAttention,
    testing::Values(
        Case{"math", AttentionKernel::kMath, at::kBFloat16, 4, 4, 33, 70},
        Case{"math_grouped", AttentionKernel::kMath, at::kBFloat16, 4, 2, 33, 70},
        Case{"math_float", AttentionKernel::kMath, at::kFloat, 4, 4, 33, 70},
        Case{"math_half", AttentionKernel::kMath, at::kHalf, 4, 1, 5, 70},
        Case{"efficient", AttentionKernel::kEfficient, at::kBFloat16, 4, 4, 33, 70},
        Case{"efficient_grouped", AttentionKernel::kEfficient, at::kHalf, 4, 2, 33, 70},
        Case{"efficient_float", AttentionKernel::kEfficient, at::kFloat, 4, 4, 40, 70},
        Case{"efficient_float_grouped", AttentionKernel::kEfficient, at::kFloat, 6, 2, 40, 70},
        Case{"flash", AttentionKernel::kFlash, at::kBFloat16, 4, 4, 33, 70},
        Case{"flash_grouped", AttentionKernel::kFlash, at::kBFloat16, 4, 2, 33, 70},
        Case{"flash_float", AttentionKernel::kFlash, at::kFloat, 4, 4, 33, 70},
        Case{"flash_padded", AttentionKernel::kFlash, at::kBFloat16, 4, 4, 33, 70, 36},
        Case{"flash_padded_grouped", AttentionKernel::kFlash, at::kHalf, 4, 2, 33, 70, 19},
        Case{"efficient_padded", AttentionKernel::kEfficient, at::kBFloat16, 4, 4, 33, 70, 36},
        Case{"cudnn_padded", AttentionKernel::kCudnn, at::kBFloat16, 4, 4, 33, 70, 36},
        Case{"cudnn", AttentionKernel::kCudnn, at::kBFloat16, 4, 4, 33, 70},
        Case{"cudnn_grouped", AttentionKernel::kCudnn, at::kBFloat16, 4, 2, 33, 70},
        Case{"cudnn_one_query", AttentionKernel::kCudnn, at::kBFloat16, 4, 2, 1, 70}),
    [](const auto& info) { return info.param.name; });

using AttentionInChunks = OnGpu;

double largest_bytes(const CountsKernels& counts) {
  std::int64_t most = 0;
  for (const auto& kernel : counts.kernels()) most = std::max(most, kernel.bytes);
  return double(most);
}

TEST(QueriesAtOnce, WriteOutAtMost256MiBOfScores) {
  EXPECT_EQ(ops::queries_at_once(1, 16384), 2048);  // of an autoencoder, 1024x1024
  EXPECT_EQ(ops::queries_at_once(1, 65536), 1024);  // 2048x2048
  EXPECT_EQ(ops::queries_at_once(24, 4608), 606);
  EXPECT_EQ(ops::queries_at_once(1, 100), 2048);
  EXPECT_EQ(ops::queries_at_once(1 << 20, 1 << 20), 64);
  EXPECT_EQ(ops::queries_at_once(0, 0), 2048);
}

// An autoencoder's one head of 512 numbers needs it on RDNA3.
TEST_F(AttentionInChunks, WritesOutTheScoresOfSomeQueries) {
  const auto x = draw(1, 1, 4200, 300, at::kBFloat16);
  const auto q = there(x.q), k = there(x.k), v = there(x.v);
  const CountsKernels counts;
  const auto y = ops::attention(q, k, v);
  EXPECT_EQ(y.sizes(), x.q.sizes());
  EXPECT_LE(largest_error(y, exact(x, exact_scores(x))), 3 * unit(at::kBFloat16));
  const double chunk = 2.0 * 2048 * 300 * 4;  // of two pictures, in float32
  EXPECT_GE(largest_bytes(counts), chunk);    // a softmax reads and writes them
  EXPECT_LE(largest_bytes(counts), 2.5 * chunk);
}

using SlowAttentionInChunks = AttentionInChunks;

TEST_F(SlowAttentionInChunks, IsCausalWhereItWasAsked) {
  constexpr std::int64_t kTokens = 2060;
  const auto x = draw(2, 1, kTokens, kTokens, at::kFloat, 8);
  auto scores = exact_scores(x);
  scores.masked_fill_(at::ones({kTokens, kTokens}, at::kBool).triu(1), -INFINITY);
  const auto y = ops::causal_attention(there(x.q), there(x.k), there(x.v));
  EXPECT_LE(largest_error(y, exact(x, scores)), 3 * unit(at::kFloat));
}

// LibTorch computes separate products where its kernel takes no mask. Query i sees every third key
// from i on, and the last.
TEST_F(AttentionInChunks, WritesOutSomeOfTheScoresWhereAKernelTakesNoMask) {
  const fake_gpu::Attends attends(AttentionKernel::kFlash);
  constexpr std::int64_t kQueries = 4200, kKeys = 300;
  const auto x = draw(1, 1, kQueries, kKeys, at::kBFloat16);
  const auto ahead = at::arange(kKeys) - at::arange(kQueries).unsqueeze(1);
  auto is_seen = ahead.ge(0).logical_and(ahead.remainder(3).eq(0));
  is_seen.select(1, kKeys - 1).fill_(true);
  auto scores = exact_scores(x);
  scores.masked_fill_(is_seen.logical_not(), -INFINITY);
  const auto q = there(x.q), k = there(x.k), v = there(x.v), seen = is_seen.to(q.device());
  const CountsKernels counts;
  const auto y = ops::masked_attention(q, k, v, seen);
  EXPECT_LE(largest_error(y, exact(x, scores)), 3 * unit(at::kBFloat16));
  const double chunk = 2.0 * 2048 * kKeys * 4;
  EXPECT_GE(largest_bytes(counts), chunk);
  EXPECT_LE(largest_bytes(counts), 3.5 * chunk);  // the mask, as numbers, is added to them
}

TEST_F(AttentionInChunks, IsOneKernelWhereAnotherIsChosen) {
  const fake_gpu::Attends attends(AttentionKernel::kEfficient);
  const auto x = draw(1, 1, 2100, 2100, at::kBFloat16, 16);
  const auto q = there(x.q), k = there(x.k), v = there(x.v);
  const CountsKernels counts;
  (void)ops::attention(q, k, v);
  EXPECT_EQ(counts.count(), 1u);
}

}  // namespace braid::chosen_attention_test
