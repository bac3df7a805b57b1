// Does what gpu_kernels_test.cc does for the kernel between a projection and attention.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "kernel_device.h"
#include "ops/gpu/gpu.h"

namespace braid::gpu_heads_test {

namespace gpu = ops::gpu;

struct HeadCase {
  at::ScalarType dtype;
  std::int64_t batch, heads, width;
  std::vector<std::int64_t> tokens;  // of the parts
};

std::ostream& operator<<(std::ostream& out, const HeadCase& c) {
  return out << c.dtype << " " << c.batch << "x" << c.heads << "x" << c.width << ", "
             << c.tokens.size() << " parts";
}

class GpuHeads : public testing::TestWithParam<HeadCase> {
 protected:
  void SetUp() override {
    if (!kernel_device()) GTEST_SKIP() << "there is no GPU";
  }
  Tensor draw(at::IntArrayRef shape, double scale = 1) {
    const auto x = at::randn(shape, generator_, at::kFloat) * scale;
    return x.to(GetParam().dtype).to(*kernel_device());
  }
  at::Generator generator_ = at::detail::createCPUGenerator(11);
};

// Views into a fused projection, as in the models.
TEST_P(GpuHeads, AreNormedAndRotated) {
  const auto& c = GetParam();
  std::vector<ops::NormedHeads> parts;
  std::vector<Tensor> normed;
  std::int64_t length = 0;
  for (const auto tokens : c.tokens) {
    const auto qkv = draw({c.batch, tokens, 3 * c.heads * c.width}, 5);
    const auto x = qkv.narrow(2, c.heads * c.width, c.heads * c.width).unflatten(-1, {-1, c.width});
    parts.push_back({x, draw({c.width})});
    const auto wide = x.cpu().to(at::kDouble);
    normed.push_back(wide / (wide.square().mean(-1, true) + 1e-6).sqrt() *
                     parts.back().weight_D.cpu().to(at::kDouble));
    length += tokens;
  }
  const auto angles =
      at::randn({length, c.width / 2}, generator_, at::kDouble).repeat_interleave(2, 1);
  const Rope rope{.cos = angles.cos().to(at::kFloat), .sin = angles.sin().to(at::kFloat)};
  const Rope there{.cos = rope.cos.to(*kernel_device()), .sin = rope.sin.to(*kernel_device())};
  const auto pairs = at::cat(normed, 1).unflatten(-1, {-1, 2});
  const auto turned = at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1);
  const auto want = pairs.flatten(-2) * rope.cos.to(at::kDouble).unsqueeze(1) +
                    turned.flatten(-2) * rope.sin.to(at::kDouble).unsqueeze(1);
  const auto got = gpu::normed_rotated(parts, 1e-6, there).cpu();
  ASSERT_EQ(got.sizes(), want.sizes());
  ASSERT_EQ(got.scalar_type(), c.dtype);
  const double half_unit = c.dtype == at::kFloat ? 0 : c.dtype == at::kHalf ? 0x1p-11 : 0x1p-8;
  const auto allowed = want.abs() * half_unit + want.abs().max() * 2e-6;
  EXPECT_TRUE((got.to(at::kDouble) - want).abs().le(allowed).all().item<bool>());
}

// Queries and keys together, of which keys may have fewer heads, are what they are apart. More
// parts than a kernel takes are shared among several.
TEST_P(GpuHeads, OfQueriesAndKeysAreWhatTheyAreApart) {
  const auto& c = GetParam();
  std::vector<ops::NormedHeads> q, k;
  std::int64_t length = 0;
  for (const auto tokens : c.tokens) {
    q.push_back({draw({c.batch, tokens, 2 * c.heads, c.width}), draw({c.width})});
    k.push_back({draw({c.batch, tokens, c.heads, c.width}), draw({c.width})});
    length += tokens;
  }
  const auto angles = at::randn({length, c.width / 2}, generator_, at::kFloat);
  const auto there = [](const Tensor& x) { return x.repeat_interleave(2, 1).to(*kernel_device()); };
  const Rope rope{.cos = there(angles.cos()), .sin = there(angles.sin())};
  const auto got = gpu::normed_rotated(q, k, 1e-6, rope);
  EXPECT_TRUE(at::equal(got.q_BLHD, gpu::normed_rotated(q, 1e-6, rope)));
  EXPECT_TRUE(at::equal(got.k_BLGD, gpu::normed_rotated(k, 1e-6, rope)));
}

// FLUX's heads, the narrowest, one not divisible by a power of two, and the widest accepted.
std::vector<HeadCase> head_cases() {
  std::vector<HeadCase> cases;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    cases.push_back({dtype, 2, 3, 128, {5, 4}});
    cases.push_back({dtype, 1, 24, 128, {3}});
    for (const std::int64_t width : {2, 6, 40, 66, 192, 512})
      cases.push_back({dtype, 2, 3, width, {1, 2, 3}});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Shapes, GpuHeads, testing::ValuesIn(head_cases()));

}  // namespace braid::gpu_heads_test
