// Parts of a denoiser, one behind the other.
#include "nn/denoiser_part.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace braid::denoiser_part_test {

// Appends its number to the text.
DenoiserPart refining(double number) {
  return {.predict = [](const DenoiserInput&, const Tensor& state) { return state; },
          .refine =
              [=](const DenoiserInput&, const Tensor& text_BTC) {
                const auto mine = at::full({1}, number);
                return text_BTC.defined() ? at::cat({text_BTC, mine}) : mine;
              }};
}

TEST(JoinedParts, RefineTheTextOneBehindTheOther) {
  DenoiserPart whole;
  for (const double number : {1.0, 2.0, 3.0}) (void)joined_to(whole, refining(number));
  EXPECT_TRUE(at::equal(whole.refine({}, {}), at::tensor({1.0, 2.0, 3.0}, at::kFloat)));
}

TEST(JoinedParts, RefineNothingWhereNoneDoes) {
  DenoiserPart whole;
  (void)joined_to(whole, {.predict = refining(1).predict});
  EXPECT_FALSE(whole.refine);
}

}  // namespace braid::denoiser_part_test
