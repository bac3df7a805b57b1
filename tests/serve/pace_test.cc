// How long a request will take, from earlier ones.
#include "serve/jobs/pace.h"

#include <gtest/gtest.h>

namespace braid::serve::pace_test {

Request request_of(int side, int steps, int pictures = 1) {
  return {.width = side, .height = side, .steps = steps, .num_images = pictures};
}

TEST(Pace, KnowsNothingAtFirst) { EXPECT_EQ(Pace().seconds_of(request_of(512, 10)), std::nullopt); }

TEST(Pace, AddsStepsAndTheRestOfEachPicture) {
  Pace pace;
  pace.step_took(request_of(512, 10), 1, 2.0);
  pace.rest_took(request_of(512, 10), 3.0);
  EXPECT_DOUBLE_EQ(*pace.seconds_of(request_of(512, 10)), 23);
  EXPECT_DOUBLE_EQ(*pace.seconds_of(request_of(512, 10, 2)), 46);
  EXPECT_DOUBLE_EQ(*pace.seconds_left(request_of(512, 10, 2), 1, 4), 15);
}

TEST(Pace, GrowsWithThePixelsOfSizesThatWereNotSeen) {
  Pace pace;
  pace.step_took(request_of(512, 10), 1, 2.0);
  EXPECT_DOUBLE_EQ(*pace.seconds_of(request_of(1024, 1)), 8);
  auto guided = request_of(512, 1);
  guided.negative_prompt = "";
  EXPECT_DOUBLE_EQ(*pace.seconds_of(guided), 4);
}

TEST(Pace, CountsTheEvaluationsOfASampler) {
  Pace pace;
  pace.step_took(request_of(512, 10), 1, 2.0);
  auto heun = request_of(512, 1);
  heun.sampling.sampler = Sampler::kHeun;
  EXPECT_DOUBLE_EQ(*pace.seconds_of(heun), 4);
}

// diffusers' get_timesteps: 10 steps at a strength of 0.3 are the last 3, and at 0.75 the last 8.
TEST(Pace, CountsTheStepsThatAStrengthLeaves) {
  auto third = request_of(512, 10);
  third.pictures.strength = 0.3;
  auto most = request_of(512, 10);
  most.pictures.strength = 0.75;
  Pace pace;
  pace.step_took(third, 1, 2.0);
  EXPECT_DOUBLE_EQ(*pace.seconds_of(third), 6);
  EXPECT_DOUBLE_EQ(*pace.seconds_left(third, 0, 2), 2);
  EXPECT_DOUBLE_EQ(*pace.seconds_of(most), 16);
}

TEST(Pace, CountsRoundsOfPicturesThatAreMadeTogether) {
  Pace pace;
  pace.step_took(request_of(512, 10, 4), 2, 2.0);
  EXPECT_DOUBLE_EQ(*pace.seconds_of(request_of(512, 10, 4)), 40);
  EXPECT_DOUBLE_EQ(*pace.seconds_left(request_of(512, 10, 4), 2, 0), 20);
}

// Clients choose sizes: what is kept must be bounded.
TEST(Pace, BeginsAnewWhereItHasSeenManySizes) {
  Pace pace;
  pace.step_took(request_of(512, 1), 1, 100);
  for (int side = 1; side < 256; ++side) pace.step_took(request_of(side, 1), 1, 1);
  EXPECT_DOUBLE_EQ(*pace.seconds_of(request_of(512, 1)), 100);
  pace.step_took(request_of(256, 1), 1, 1);
  EXPECT_DOUBLE_EQ(*pace.seconds_of(request_of(512, 1)), 4);
}

}  // namespace braid::serve::pace_test
