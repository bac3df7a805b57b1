// Modulations computed across the stages of pipeline parallelism, and for inputs that lack them.
#include "parallel/modulations.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/thread.h"

namespace braid::modulations_test {

DenoiserInput picture(double timestep, std::int64_t steps) {
  return {.noise = {at::zeros({1, 2, 3}), {}},
          .text = {},
          .timestep_B = timestep + at::arange(steps).to(at::kFloat)};
}

// Stage s has s + 1 columns, each the timestep plus s.
DenoiserPart part_of_stage(int stage) {
  return {.predict = {},
          .condition =
              [=](const DenoiserInput& in) {
                EXPECT_EQ(stage, 0) << "only the first stage embeds timesteps";
                return in.timestep_B.unsqueeze(-1);
              },
          .modulate =
              [=](const std::vector<Tensor>& conditions, const std::function<void()>&) {
                std::vector<Tensor> made;
                for (const auto& c : conditions) made.push_back(c.expand({-1, stage + 1}) + stage);
                return made;
              },
          .num_modulations = stage + 1};
}

TEST(Modulations, AreMadeByEachStageOfWhatTheFirstOneEmbeds) {
  for (const int num_stages : {1, 2, 3})
    run_ranks({.size = num_stages}, [](const Group& stages) {
      const auto modulate = modulate_over(stages, part_of_stage(stages.rank()));
      const auto made = modulate({picture(10, 4), picture(20, 4)});
      ASSERT_EQ(made.size(), 2u);
      for (int i = 0; i < 2; ++i) {
        const auto want = 10.0 * (i + 1) + at::arange(4).to(at::kFloat) + stages.rank();
        EXPECT_TRUE(
            at::equal(made[std::size_t(i)], want.unsqueeze(-1).expand({4, stages.rank() + 1})));
      }
    });
}

TEST(Modulations, AreNotMadeForPartsThatMakeTheirOwn) {
  EXPECT_FALSE(modulate_over({}, {.predict = {}}));
}

TEST(Modulations, AreGivenToInputsThatLackThem) {
  auto lacks = picture(10, 2);
  lacks.noise.x_BLC = at::zeros({2, 2, 3});
  auto brings = lacks;
  brings.modulations_BM = at::ones({2, 1});
  const PredictAll inner = [](const std::vector<DenoiserInput>& inputs) {
    return std::vector{inputs[0].modulations_BM, inputs[1].modulations_BM};
  };
  const auto seen = with_modulations(modulate_over({}, part_of_stage(0)), inner)({lacks, brings});
  EXPECT_TRUE(at::equal(seen[0], at::tensor({10.f, 11.f}).unsqueeze(-1)));
  EXPECT_TRUE(at::equal(seen[1], brings.modulations_BM));
}

}  // namespace braid::modulations_test
