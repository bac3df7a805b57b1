// ControlNets around pipeline parallelism: which stage evaluates which pictures, and who gets the
// results.
#include "parallel/controls.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/stepped_clock.h"
#include "comm/thread.h"

namespace braid::controls_test {

// Pictures whose values are their batch indices, and one control each.
DenoiserInput input_of(std::int64_t num_pictures) {
  const auto places = at::arange(num_pictures, at::kFloat).view({-1, 1, 1});
  DenoiserInput in{.noise = {places.expand({-1, 5, 2}), at::zeros({5, 3})},
                   .text = {at::zeros({num_pictures, 4, 2}), at::zeros({4, 3})},
                   .timestep_B = at::zeros({num_pictures})};
  in.controls = {{.x_BNC = places.expand({-1, 5, 3}) + 100, .text = {}}};
  return in;
}

// Two residuals for double blocks, none for single ones.
BlockResiduals followed(const DenoiserInput& in) {
  const auto seen = in.noise.x_BLC + in.controls.front().x_BNC.narrow(2, 0, 2);
  return {.doubles = {seen, seen * 2}, .singles = {}};
}

TEST(Controls, AreFollowedByEachStageForItsOwnPicturesAndMadeKnownToAll) {
  for (const int num_stages : {1, 2, 3})
    for (const std::int64_t num_pictures : {1, 2, 5})
      run_ranks({.size = num_stages}, [&](const Group& stages) {
        std::int64_t mine = 0;
        const Follow follow = [&](const DenoiserInput& in) {
          mine += in.noise.x_BLC.size(0);
          return followed(in);
        };
        const auto want = followed(input_of(num_pictures));
        const PredictAll inner = [&](const std::vector<DenoiserInput>& inputs) {
          for (const auto& in : inputs) {
            EXPECT_TRUE(in.controls.empty());
            EXPECT_TRUE(in.residuals.singles.empty());
            EXPECT_EQ(in.residuals.doubles.size(), 2u);
            for (std::size_t i = 0; i < in.residuals.doubles.size(); ++i)
              EXPECT_TRUE(at::equal(in.residuals.doubles[i], want.doubles[i])) << i;
          }
          return std::vector<Tensor>(inputs.size(), at::zeros({1}));
        };
        const auto in = input_of(num_pictures);
        EXPECT_EQ(with_controls(stages, follow, inner)({in, in}).size(), 2u);
        EXPECT_EQ(mine, share_of(num_pictures, stages.rank(), num_stages).count)
            << "branches of a step have their controls in common";
      });
}

TEST(Controls, AreNotFollowedWhereThereAreNone) {
  auto in = input_of(1);
  in.controls.clear();
  const Follow follow = [](const DenoiserInput&) -> BlockResiduals { throw Error("nothing"); };
  const PredictAll inner = [](const auto& inputs) {
    return std::vector<Tensor>(inputs.size(), at::zeros({1}));
  };
  EXPECT_EQ(with_controls({}, follow, inner)({in}).size(), 1u);
}

// A stage without pictures waits for the one that has them.
TEST(Controls, MayTakeLongerThanTheDeadline) {
  SteppedClock clock;
  clock.run_ranks(2, [&](const Group& stages) {
    const Follow follow = [&](const DenoiserInput& in) {
      clock.outlast_deadline(stages);
      return followed(in);
    };
    const PredictAll inner = [](const std::vector<DenoiserInput>& inputs) {
      return inputs.front().residuals.doubles;
    };
    EXPECT_EQ(with_controls(stages, follow, inner)({input_of(1)}).size(), 2u);
  });
}

}  // namespace braid::controls_test
