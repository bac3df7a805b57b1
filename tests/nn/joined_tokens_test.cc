// Text and image tokens as one sequence; what came before is not kept.
#include "nn/joined_tokens.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/free_memory.h"
#include "resident_bytes.h"

namespace braid::joined_tokens_test {

TEST(JoinedTokens, HaveTextFirstAndLetGoOfBoth) {
  auto text = at::full({2, 3, 4}, 1), image = at::full({2, 5, 4}, 2);
  const auto tokens = joined_tokens(text, image);
  EXPECT_EQ(tokens.sizes(), at::IntArrayRef({2, 8, 4}));
  EXPECT_TRUE((tokens.narrow(1, 0, 3) == 1).all().item<bool>());
  EXPECT_TRUE((tokens.narrow(1, 3, 5) == 2).all().item<bool>());
  EXPECT_FALSE(text.defined());
  EXPECT_FALSE(image.defined());
}

TEST(ImageTokens, AreTheNoiseWithItsExtraChannelsAndTheReferencesBehind) {
  const auto run = [](std::int64_t length, double value) {
    return Tokens{.x_BLC = at::full({2, length, 4}, value), .ids_LA = {}};
  };
  DenoiserInput in{.noise = run(5, 1), .text = run(6, 9)};
  EXPECT_TRUE(at::equal(image_tokens(in), in.noise.x_BLC));
  in.references = {run(2, 2), run(3, 3)};
  EXPECT_TRUE(
      at::equal(image_tokens(in), at::cat({run(5, 1).x_BLC, run(2, 2).x_BLC, run(3, 3).x_BLC}, 1)));
  in.noise.x_BLC = at::full({2, 5, 1}, 1);
  in.extra_BLC = at::full({2, 5, 3}, 7);
  const auto noise = image_tokens(in).narrow(1, 0, 5);
  EXPECT_TRUE(at::equal(noise, at::cat({in.noise.x_BLC, in.extra_BLC}, -1)));
}

// Runs of one tensor are seen as one; others, and those of several pictures, are copied.
TEST(OneBehindOther, CopiesOnlyWhatDoesNotLieSo) {
  const auto all = at::randn({1, 7, 3 * 2 * 4});
  const auto heads = [&](std::int64_t begin, std::int64_t count) {
    return all.narrow(1, begin, count).narrow(2, 16, 8).unflatten(-1, {2, 4});
  };
  const auto a = heads(0, 3), b = heads(3, 4);
  const auto joined = one_behind_other(a, b);
  EXPECT_TRUE(joined.is_alias_of(all));
  EXPECT_TRUE(at::equal(joined, heads(0, 7)));
  for (const std::int64_t first : {1, 6}) {  // a token alone has any stride
    const auto alone = one_behind_other(heads(0, first), heads(first, 7 - first));
    EXPECT_TRUE(alone.is_alias_of(all));
    EXPECT_TRUE(at::equal(alone, heads(0, 7)));
  }
  for (const auto& [x, y] : {std::pair(b, a), std::pair(heads(0, 2), b), std::pair(a, b.clone()),
                             std::pair(a.expand({2, 3, 2, 4}), b.expand({2, 4, 2, 4}))}) {
    const auto copy = one_behind_other(x, y);
    EXPECT_FALSE(copy.is_alias_of(all));
    EXPECT_TRUE(at::equal(copy, at::cat({x, y}, 1)));
  }
}

// Small models keep it: giving it back would take longer than their blocks.
TEST(JoinedTokens, OfLargeModelsGiveBackWhatBlocksBeforeLeft) {
  if (is_sanitized()) GTEST_SKIP() << "sanitizers have memory of their own";
  constexpr std::int64_t kMegabyte = 1 << 20;
  const KeepFreedMemory keep;
  MemoryMeter meter;
  for (const std::int64_t numbers : {kMegabyte / 8, kMegabyte}) {  // of 4 bytes, each twice
    auto text = at::ones({1, 1, numbers}), image = at::ones({1, 1, numbers});
    auto before = at::ones({48 * kMegabyte / 4});
    const auto behind = at::ones({1024});  // keeps the heap from shrinking
    before.reset();
    const auto kept = resident_bytes(meter);
    if (!meter.is_exact()) GTEST_SKIP() << "this kernel does not let the peak be reset";
    const auto tokens = joined_tokens(text, image);
    const auto left = resident_bytes(meter);
    if (numbers < kMegabyte)
      EXPECT_GT(left, kept - 8 * kMegabyte);
    else
      EXPECT_LT(left, kept - 32 * kMegabyte);
  }
}

}  // namespace braid::joined_tokens_test
