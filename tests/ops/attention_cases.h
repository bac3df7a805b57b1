// The kernels to test our own attention with: tiles emulated by loops, and all that this machine
// can run; and the definition in float64.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ops/cpu/attention.h"
#include "ops/kernels/attention_kernels.h"

namespace braid {

namespace ops::of_loops {
ProductKernels with_tiles(const ProductKernels& vectors);       // tiles.cc on tiles_of_loops.h
AttentionKernels attention_by(const ProductKernels& products);  // tiled_attention.cc on it
ProductKernels with_pairs(const ProductKernels& vectors);       // pair_products.cc on loops
AttentionKernels attention_by_pairs(const ProductKernels& products);  // pair_attention.cc
}  // namespace ops::of_loops

using ops::AttentionKernels, ops::PartialAttention;

inline const AttentionKernels& loops() {
  static const auto products = ops::of_loops::with_tiles(*ops::runnable_products(0).kernels);
  static const auto kernels = ops::of_loops::attention_by(products);
  return kernels;
}

inline const AttentionKernels& pairs() {
  static const auto products = ops::of_loops::with_pairs(*ops::runnable_products(0).kernels);
  static const auto kernels = ops::of_loops::attention_by_pairs(products);
  return kernels;
}

struct Named {
  std::string name;
  const AttentionKernels* kernels;
};
inline std::vector<Named> all_kernels() {
  std::vector<Named> all{{"tiles_of_loops", &loops()}, {"pairs_of_loops", &pairs()}};
  for (int i = 0; ops::runnable_attention(i).kernels; ++i)
    all.push_back({ops::runnable_attention(i).name, ops::runnable_attention(i).kernels});
  return all;
}

inline Tensor draw(at::IntArrayRef shape, std::uint64_t seed, double scale = 1) {
  const auto generator = at::detail::createCPUGenerator(seed);
  return (at::randn(shape, generator, at::kFloat) * scale).to(at::kBFloat16);
}

struct Inputs {
  Tensor q, k, v;
};

inline PartialAttention exact(const Inputs& x) {
  const auto heads_per_group = x.q.size(1) / x.k.size(1);
  const auto q = x.q.to(at::kDouble);
  const auto k = x.k.to(at::kDouble).repeat_interleave(heads_per_group, 1);
  const auto v = x.v.to(at::kDouble).repeat_interleave(heads_per_group, 1);
  const auto scores = q.matmul(k.transpose(-1, -2)) / std::sqrt(double(q.size(-1)));
  return {.out_BHLD = at::softmax(scores, -1).matmul(v), .lse_BHL = at::logsumexp(scores, -1)};
}

inline double largest_error(const Tensor& got, const Tensor& want) {
  return (got.to(at::kDouble) - want).abs().max().item<double>();
}
inline double relative_error(const Tensor& got, const Tensor& want) {
  return ((got.to(at::kDouble) - want).norm() / want.norm()).item<double>();
}

// Weights are rounded to 2^-9 of themselves, and the result once more.
inline constexpr double kUnit = 1.0 / 256;

// Checks the result within two roundings of the largest value, and the LSE.
inline void expect_exact(const Inputs& x, double lse_error) {
  const auto want = exact(x);
  const auto unit = kUnit * x.v.abs().max().item<double>();
  for (const auto& [name, kernels] : all_kernels()) {
    const auto got = ops::cpu::attend(x.q, x.k, x.v, kernels);
    EXPECT_LT(largest_error(got.out_BHLD, want.out_BHLD), unit) << name;
    EXPECT_LT(largest_error(got.lse_BHL, want.lse_BHL), lse_error) << name;
  }
}

struct Sizes {
  std::int64_t batch, heads, queries, keys, width;
  std::int64_t heads_per_group = 1;
};

inline Inputs draw(const Sizes& s) {
  return {.q = draw({s.batch, s.heads, s.queries, s.width}, 1),
          .k = draw({s.batch, s.heads / s.heads_per_group, s.keys, s.width}, 2),
          .v = draw({s.batch, s.heads / s.heads_per_group, s.keys, s.width}, 3)};
}

}  // namespace braid
