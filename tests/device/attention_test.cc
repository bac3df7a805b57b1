// Attention on a GPU against float64, and over parts of the keys, merged.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include <cmath>

#include "on_gpu.h"
#include "ops/ops.h"

namespace braid::attention_test {

struct Case {
  at::ScalarType dtype;
  std::int64_t batch, heads, queries, keys, width;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.dtype << " " << c.batch << "x" << c.heads << ", " << c.queries << " of " << c.keys
             << " keys, width " << c.width;
}

double largest_error(const Tensor& got, const Tensor& want) {
  return (got.cpu().to(at::kDouble) - want).abs().max().item<double>();
}

class AttentionOnGpu : public OnGpu, public testing::WithParamInterface<Case> {
 protected:
  // Tokens first, as projections make them: heads are a view.
  Tensor draw(std::int64_t tokens) {
    const auto& c = GetParam();
    const auto x = at::randn({c.batch, tokens, c.heads, c.width}, generator_, at::kFloat);
    return x.to(c.dtype).transpose(1, 2);
  }
  // Weights are rounded once and the result once more.
  static double unit() {
    return GetParam().dtype == at::kFloat ? 2e-6 : GetParam().dtype == at::kHalf ? 0x1p-9 : 0x1p-6;
  }

  at::Generator generator_ = at::detail::createCPUGenerator(7);
};

TEST_P(AttentionOnGpu, EqualsFloat64AndTellsItsLse) {
  const auto& c = GetParam();
  const auto q = draw(c.queries), k = draw(c.keys), v = draw(c.keys);
  const auto scores =
      q.to(at::kDouble).matmul(k.to(at::kDouble).transpose(-1, -2)) / std::sqrt(double(c.width));
  const auto want = at::softmax(scores, -1).matmul(v.to(at::kDouble));
  const auto there = [](const Tensor& x) { return x.transpose(1, 2).to(gpu()).transpose(1, 2); };
  const auto whole = ops::attention(there(q), there(k), there(v));
  const auto part = ops::attention_with_lse(there(q), there(k), there(v));
  EXPECT_EQ(whole.sizes(), want.sizes());
  EXPECT_EQ(part.out_BHLD.sizes(), want.sizes());
  EXPECT_EQ(part.lse_BHL.sizes(), want.sizes().slice(0, 3));
  EXPECT_EQ(part.lse_BHL.scalar_type(), at::kFloat);
  EXPECT_LE(largest_error(whole, want), 3 * unit());
  EXPECT_LE(largest_error(part.out_BHLD, want), 3 * unit());
  EXPECT_LE(largest_error(part.lse_BHL, at::logsumexp(scores, -1)),
            c.dtype == at::kFloat ? 1e-5 : 2e-2);
}

TEST_P(AttentionOnGpu, OverNoKeysIsNothing) {
  const auto none =
      ops::attention_with_lse(draw(3).to(gpu()), draw(0).to(gpu()), draw(0).to(gpu()));
  EXPECT_EQ(none.out_BHLD.abs().sum().item<double>(), 0);
  EXPECT_TRUE(none.lse_BHL.eq(-INFINITY).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionOnGpu,
    testing::Values(Case{at::kFloat, 1, 2, 40, 40, 64}, Case{at::kFloat, 2, 3, 33, 70, 128},
                    Case{at::kBFloat16, 1, 2, 40, 40, 64}, Case{at::kBFloat16, 2, 3, 33, 70, 128},
                    Case{at::kBFloat16, 1, 1, 1, 5, 32}, Case{at::kHalf, 1, 4, 130, 129, 128}));

}  // namespace braid::attention_test
