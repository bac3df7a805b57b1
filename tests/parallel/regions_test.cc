// Branches and tokens shared out among ranks, on toy denoisers that tell where each value was made.
#include "parallel/regions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/stepped_clock.h"
#include "comm/thread.h"

namespace braid::regions_test {

// Tokens and positions with numbers of their own, of one or two pictures.
Tokens tokens_of(std::int64_t batch, std::int64_t count, double first) {
  const auto places = at::arange(count, at::kFloat) + first;
  const auto pictures = 1000 * at::arange(batch, at::kFloat).view({-1, 1, 1});
  return {.x_BLC = places.view({1, -1, 1}) + pictures, .ids_LA = places.unsqueeze(1)};
}

DenoiserInput input_of(std::int64_t batch, double branch) {
  DenoiserInput in{.noise = tokens_of(batch, 11, 100),
                   .text = tokens_of(batch, 5, 200),
                   .references = {tokens_of(batch, 7, 300), tokens_of(batch, 4, 400)},
                   .extra_BLC = tokens_of(batch, 11, 500).x_BLC,
                   .timestep_B = at::full({batch}, branch)};
  in.text.is_pad_L = at::arange(5) > 3;
  in.controls = {{.x_BNC = tokens_of(batch, 11, 600).x_BLC,
                  .text = tokens_of(batch, 3, 700),
                  .scale = at::rand({})}};
  in.residuals.doubles = {tokens_of(batch, 11, 800).x_BLC};
  in.residuals.singles = {tokens_of(batch, 11, 900).x_BLC};
  return in;
}

// A picture's parts must stay together: noise, its positions, what is beside it and added to it.
TEST(SplitTokens, CutsAllOfAPieceTheSameWay) {
  for (const int size : {1, 2, 3})
    run_ranks({.size = size}, [&](const Group& ranks) {
      const auto whole = input_of(2, 0);
      const PredictAll inner = [&](const std::vector<DenoiserInput>& inputs) {
        const auto& in = inputs.front();
        const auto is_share = [&](const Tensor& mine, const Tensor& of, std::int64_t dim) {
          return at::equal(mine, size == 1 ? of : take_share(of, dim, ranks));
        };
        EXPECT_TRUE(is_share(in.noise.x_BLC, whole.noise.x_BLC, 1));
        EXPECT_TRUE(is_share(in.noise.ids_LA, whole.noise.ids_LA, 0));
        EXPECT_TRUE(is_share(in.text.x_BLC, whole.text.x_BLC, 1));
        EXPECT_TRUE(is_share(in.text.is_pad_L, whole.text.is_pad_L, 0));
        for (std::size_t i = 0; i < 2; ++i) {
          EXPECT_TRUE(is_share(in.references[i].x_BLC, whole.references[i].x_BLC, 1)) << i;
          EXPECT_TRUE(is_share(in.references[i].ids_LA, whole.references[i].ids_LA, 0)) << i;
        }
        EXPECT_TRUE(is_share(in.extra_BLC, whole.extra_BLC, 1));
        EXPECT_TRUE(is_share(in.controls[0].x_BNC, whole.controls[0].x_BNC, 1));
        EXPECT_TRUE(is_share(in.controls[0].text.x_BLC, whole.controls[0].text.x_BLC, 1));
        EXPECT_TRUE(at::equal(in.controls[0].scale, whole.controls[0].scale));
        EXPECT_TRUE(is_share(in.residuals.doubles[0], whole.residuals.doubles[0], 1));
        EXPECT_TRUE(is_share(in.residuals.singles[0], whole.residuals.singles[0], 1));
        EXPECT_TRUE(at::equal(in.timestep_B, whole.timestep_B));
        return std::vector{in.noise.x_BLC + in.extra_BLC};
      };
      const auto velocity = split_tokens(ranks, inner)({whole}).front();
      EXPECT_TRUE(at::equal(velocity, whole.noise.x_BLC + whole.extra_BLC)) << size << " ranks";
    });
}

// Three conditions give one of two ranks a branch more than the other.
TEST(SplitBranches, GivesEveryBranchItsOwnVelocity) {
  for (const int size : {1, 2, 3})
    for (int branches = size; branches <= 4; ++branches)
      run_ranks({.size = size}, [&](const Group& ranks) {
        int mine = 0;
        const auto predict = split_cfg(ranks, one_by_one([&](const DenoiserInput& in) {
                                         ++mine;
                                         return in.noise.x_BLC + in.timestep_B.view({-1, 1, 1});
                                       }));
        std::vector<DenoiserInput> inputs;
        for (int i = 0; i < branches; ++i) inputs.push_back(input_of(2, 10000.0 * (i + 1)));
        const auto velocities = predict(inputs);
        ASSERT_EQ(velocities.size(), inputs.size());
        for (int i = 0; i < branches; ++i)
          EXPECT_TRUE(
              at::equal(velocities[std::size_t(i)], inputs.front().noise.x_BLC + 10000.0 * (i + 1)))
              << "branch " << i << " of " << branches << " on " << size << " ranks";
        EXPECT_LE(mine, (branches + size - 1) / size);
      });
}

TEST(PictureOf, IsOneRowOfAllThatIsBatched) {
  const auto one = picture_of(input_of(2, 5), 1);
  EXPECT_EQ(one.noise.x_BLC.select(2, 0).min().item<float>(), 1100);
  EXPECT_EQ(one.references[1].x_BLC.size(0), 1);
  EXPECT_EQ(one.residuals.singles[0].min().item<float>(), 1900);
  EXPECT_EQ(one.controls[0].x_BNC.min().item<float>(), 1600);
  EXPECT_EQ(one.noise.ids_LA.size(0), 11);
  EXPECT_EQ(one.timestep_B.size(0), 1);
}

// A negative prompt is shorter or longer, and a cache may leave out most of one branch's blocks.
TEST(SplitBranches, MayTakeLongerOnOneRankThanTheDeadline) {
  SteppedClock clock;
  clock.run_ranks(2, [&](const Group& ranks) {
    const PredictAll inner = [&](const std::vector<DenoiserInput>& inputs) {
      if (ranks.rank() == 1) clock.outlast_deadline(ranks);
      return std::vector{inputs.front().timestep_B + 0.0};
    };
    const auto made = split_cfg(ranks, inner)({input_of(1, 3), input_of(1, 4)});
    EXPECT_EQ(made[0].item<float>(), 3);
    EXPECT_EQ(made[1].item<float>(), 4);
  });
}

}  // namespace braid::regions_test
