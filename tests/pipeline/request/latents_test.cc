// Latents: FLUX's packing, positions, and noise that depends only on the seed.
#include "pipeline/families/patches.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pipeline/sampling/noise.h"

namespace braid::latents_test {

TEST(Pack, PutsTwoByTwoPatchesIntoChannels) {
  const auto latents = at::arange(2 * 3 * 4 * 6, at::kFloat).view({2, 3, 4, 6});
  const auto tokens = pack_patches(latents);
  ASSERT_EQ(tokens.sizes(), at::IntArrayRef({2, 6, 12}));
  for (std::int64_t row = 0; row < 2; ++row)
    for (std::int64_t column = 0; column < 3; ++column)
      for (std::int64_t c = 0; c < 3; ++c)
        for (std::int64_t dy = 0; dy < 2; ++dy)
          for (std::int64_t dx = 0; dx < 2; ++dx)
            EXPECT_EQ(tokens[1][row * 3 + column][c * 4 + dy * 2 + dx].item<float>(),
                      latents[1][c][2 * row + dy][2 * column + dx].item<float>());
  EXPECT_TRUE(at::equal(unpack_patches(tokens, {.rows = 2, .columns = 3}), latents));
}

TEST(Pack, PutsPatchesOfOtherSidesIntoChannels) {
  const auto latents = at::arange(2 * 6 * 9, at::kFloat).view({1, 2, 6, 9});
  const auto tokens = pack_patches(latents, 3);
  ASSERT_EQ(tokens.sizes(), at::IntArrayRef({1, 6, 18}));
  for (std::int64_t c = 0; c < 2; ++c)
    for (std::int64_t dy = 0; dy < 3; ++dy)
      for (std::int64_t dx = 0; dx < 3; ++dx)
        EXPECT_EQ(tokens[0][3 + 2][c * 9 + dy * 3 + dx].item<float>(),
                  latents[0][c][3 + dy][6 + dx].item<float>());
  EXPECT_TRUE(at::equal(unpack_patches(tokens, {.rows = 2, .columns = 3}, 3), latents));
}

TEST(PositionIds, CountRowsThenColumns) {
  const auto ids = patch_positions({.rows = 2, .columns = 3}, at::kCPU);
  ASSERT_EQ(ids.sizes(), at::IntArrayRef({6, 3}));
  EXPECT_TRUE(at::equal(ids[4], at::tensor({0.f, 1.f, 1.f})));
  EXPECT_TRUE(at::equal(ids[2], at::tensor({0.f, 0.f, 2.f})));
  const auto later = patch_positions({.rows = 2, .columns = 3}, at::kCPU, 7);
  EXPECT_TRUE(at::equal(later[4], at::tensor({7.f, 1.f, 1.f})));
}

TEST(DrawNoise, DependsOnTheSeedAlone) {
  const std::vector<std::int64_t> shape = {16, 8, 8};
  const std::vector<at::Generator> both = {generator_of(5), generator_of(6)};
  const std::vector<at::Generator> second = {generator_of(6)};
  const auto batch = draw_noise(both, shape, at::kFloat);
  EXPECT_TRUE(at::equal(batch.narrow(0, 1, 1), draw_noise(second, shape, at::kFloat)));
  EXPECT_FALSE(at::equal(batch[0], batch[1]));
}

TEST(DrawNoise, IsTorchRandnInTheModelsDtype) {
  const std::vector<std::int64_t> shape = {16, 8, 8};
  const std::vector<at::Generator> generators = {generator_of(5)};
  const auto noise = draw_noise(generators, shape, at::kBFloat16);
  EXPECT_EQ(noise.scalar_type(), at::kBFloat16);
  // torch.randn(1, 16, 8, 8, generator=torch.Generator().manual_seed(5), dtype=torch.bfloat16)
  const auto golden = at::tensor({1.84375f, 0.51953125f, -1.7109375f, -1.703125f});
  EXPECT_TRUE(at::equal(noise.flatten().narrow(0, 0, 4).to(at::kFloat), golden));
}

}  // namespace braid::latents_test
