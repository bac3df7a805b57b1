// The last rows of tensors for batches of 4096 x 4096 pictures, with more numbers than 32 bits can
// count. Untouched memory is never allocated.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "kernel_device.h"
#include "ops/gpu/gpu.h"

namespace braid::gpu_4k_test {

namespace gpu = ops::gpu;

constexpr std::int64_t kBatch = 6, kText = 512, kTokens = 256 * 256 + kText, kHidden = 6144;

class Gpu4K : public testing::Test {
 protected:
  static Tensor zeros(std::vector<std::int64_t> shape, at::ScalarType dtype = at::kBFloat16) {
    const auto bytes = std::size_t(c10::multiply_integers(shape)) * c10::elementSize(dtype);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("there is no room for a tensor of 4K");
    return at::from_blob(
        memory, shape, [bytes](void* data) { ::munmap(data, bytes); }, at::TensorOptions(dtype));
  }
  // The last token or matrix row, as a view.
  static Tensor last(const Tensor& x) {
    return x.dim() == 2 ? x.narrow(0, x.size(0) - 1, 1)
                        : x.narrow(0, x.size(0) - 1, 1).narrow(1, x.size(1) - 1, 1);
  }
  // Only the last token is allocated.
  Tensor draw(std::vector<std::int64_t> shape) {
    const auto x = zeros(std::move(shape));
    last(x).copy_(at::randn(last(x).sizes(), generator_));
    return x;
  }
  Modulation modulation() {
    const auto all = at::randn({kBatch, 1, 3 * kHidden}, generator_).to(at::kBFloat16).chunk(3, -1);
    return {.shift = all[0], .scale = all[1], .gate = all[2]};
  }
  static Modulation last(const Modulation& m) {
    return {last(m.shift), last(m.scale), last(m.gate)};
  }

  at::Generator generator_ = at::detail::createCPUGenerator(9);
};

TEST_F(Gpu4K, LastTokenIsNormed) {
  const auto x = draw({kBatch, kTokens, kHidden});
  const auto m = modulation();
  const auto want = gpu::modulated_norm(last(x).contiguous(), last(m));
  const LastBlocksOnly only(1);
  EXPECT_TRUE(at::equal(last(gpu::modulated_norm(x, m)), want));
}

TEST_F(Gpu4K, LastTokenIsGated) {
  const auto x = draw({kBatch, kTokens, kHidden}), y = draw({kBatch, kTokens, kHidden});
  const auto m = modulation();
  const auto want = gpu::gated_residual(last(x).contiguous(), last(m).gate, last(y).contiguous());
  const LastBlocksOnly only(3);
  EXPECT_TRUE(at::equal(last(gpu::gated_residual(x, m.gate, y)), want));
}

TEST_F(Gpu4K, LastTokenIsGatedAndNormed) {
  const auto x = draw({kBatch, kTokens, kHidden}), y = draw({kBatch, kTokens, kHidden});
  const auto m = modulation();
  const auto want =
      gpu::gated_residual_norm(last(x).contiguous(), last(m).gate, last(y).contiguous(), last(m));
  const LastBlocksOnly only(1);
  const auto got = gpu::gated_residual_norm(x, m.gate, y, m);
  EXPECT_TRUE(at::equal(last(got.sum_BLC), want.sum_BLC));
  EXPECT_TRUE(at::equal(last(got.normed.x), want.normed.x));
}

// A single block has [q k v | mlp] as one tensor.
TEST_F(Gpu4K, LastTokenIsJoined) {
  const auto attended = draw({1, kTokens, kHidden}), fused = draw({1, kTokens, 9 * kHidden});
  const auto mlp = fused.narrow(2, 3 * kHidden, 6 * kHidden);
  const auto want = gpu::joined_gelu(last(attended).contiguous(), last(mlp).contiguous());
  const LastBlocksOnly only(21);
  EXPECT_TRUE(at::equal(last(gpu::joined_gelu(attended, mlp)), want));
}

TEST_F(Gpu4K, LastTokenIsQuantized) {
  const auto x = draw({kBatch * kTokens, kHidden});
  const auto want = gpu::quantize_rows(last(x).contiguous(), Quantize::kInt8);
  const LastBlocksOnly only(1);
  const auto got = gpu::quantize_rows(x, Quantize::kInt8);
  EXPECT_TRUE(at::equal(last(got.values_NC), want.values_NC));
  EXPECT_TRUE(at::equal(last(got.scales_N1), want.scales_N1));
}

TEST_F(Gpu4K, LastRowIsWidened) {
  const Matrix codes{.form = Quantize::kInt8,
                     .values_NC = zeros({kBatch * kTokens, kHidden}, at::kChar),
                     .scales_N1 = zeros({kBatch * kTokens, 1}, at::kFloat)};
  last(codes.values_NC).copy_(at::randint(-128, 128, {1, kHidden}, generator_));
  last(codes.scales_N1).fill_(0.01);
  const auto one = map_tensors(codes, [](const Tensor& x) { return last(x).contiguous(); });
  const auto want = at::empty({1, kHidden}, at::kBFloat16),
             got = zeros(codes.values_NC.sizes().vec());
  gpu::widen(one, want);
  const LastBlocksOnly only(3);
  gpu::widen(codes, got);
  EXPECT_TRUE(at::equal(last(got), want));
}

TEST_F(Gpu4K, LastSumsAreScaled) {
  const auto rows = at::rand({kHidden, 1}, generator_);
  const ops::ScaledSums y{.sums_MN = zeros({kBatch * kTokens, kHidden}, at::kInt),
                          .token_scales_M1 = zeros({kBatch * kTokens, 1}, at::kFloat),
                          .row_scales_N1 = rows,
                          .bias_N = {}};
  last(y.sums_MN).copy_(at::randint(-1000, 1000, {1, kHidden}, generator_));
  last(y.token_scales_M1).fill_(0.01);
  const auto want = at::empty({1, kHidden}, at::kBFloat16), got = zeros(y.sums_MN.sizes().vec());
  gpu::scale({last(y.sums_MN), last(y.token_scales_M1), rows, {}}, want);
  const LastBlocksOnly only(3);
  gpu::scale(y, got);
  EXPECT_TRUE(at::equal(last(got), want));
}

// Views into a projection of the text and one of the picture.
TEST_F(Gpu4K, LastHeadsAreNormedAndRotated) {
  constexpr std::int64_t kWidth = 128, kHeads = kHidden / kWidth;
  const auto heads_of = [&](std::int64_t tokens) {
    return draw({kBatch, tokens, 3 * kHidden})
        .narrow(2, kHidden, kHidden)
        .unflatten(-1, {-1, kWidth});
  };
  const auto weight = at::rand({kWidth}, generator_).to(at::kBFloat16);
  const std::vector<ops::NormedHeads> parts = {{heads_of(kText), weight},
                                               {heads_of(kTokens - kText), weight}};
  const auto angles = at::rand({kTokens, kWidth / 2}, generator_).repeat_interleave(2, 1);
  const Rope rope{.cos = angles.cos(), .sin = angles.sin()};
  const std::vector<ops::NormedHeads> one = {{last(parts[1].x_BLHD).contiguous(), weight}};
  const auto want = gpu::normed_rotated(one, 1e-6, {last(rope.cos), last(rope.sin)});
  const LastBlocksOnly only(kHeads);
  EXPECT_TRUE(at::equal(last(gpu::normed_rotated(parts, 1e-6, rope)), want));
}

}  // namespace braid::gpu_4k_test
