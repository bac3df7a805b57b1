// The loop, with a formula as denoiser: what it is asked for, and how its outputs are used.
#include "pipeline/engine/denoise.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "pipeline/sampling/noise.h"

namespace braid::denoise_test {

DenoiseJob job_of(at::ScalarType dtype) {
  at::manual_seed(3);
  return {.latents_BNC = at::randn({2, 6, 8}).to(dtype),
          .branches = {{.noise = {},
                        .text = {at::randn({2, 5, 4}).to(dtype), at::zeros({5, 3})},
                        .pooled_BC = at::randn({2, 3}).to(dtype)}},
          .set_step = [](DenoiserInput& in, const Tensor& latents, float timestep) {
            in.noise.x_BLC = latents;
            in.timestep_B = at::full({latents.size(0)}, timestep / 1000, at::kFloat);
          }};
}

// Adds a negative branch that differs from the positive one by these amounts.
DenoiseJob with_negative(DenoiseJob job, double text, double pooled) {
  auto negative = job.branches.front();
  negative.text.x_BLC = negative.text.x_BLC + text;
  negative.pooled_BC = negative.pooled_BC + pooled;
  job.branches.push_back(negative);
  return job;
}

const Schedule kSchedule{.sigmas = {1, 0.75f, 0.25f, 0}, .timesteps = {1000, 750, 250}};

TEST(Denoise, FollowsAVelocityFromNoiseToThePicture) {
  const auto job = job_of(at::kFloat);
  const auto target = at::ones({2, 6, 8});
  const Predict straight = [&](const DenoiserInput& in) {
    return (in.noise.x_BLC - target) / in.timestep_B.view({2, 1, 1});
  };
  int steps = 0;
  const auto result = denoise(one_by_one(straight), {}, kSchedule, job,
                              [&](const StepTaken& taken) { steps = taken.done; });
  EXPECT_EQ(steps, 3);
  EXPECT_TRUE(at::allclose(result.latents_BNC, target, 1e-5, 1e-5));
  EXPECT_TRUE(at::equal(result.first_velocity_BNC, job.latents_BNC - target));
}

TEST(Denoise, GivesEveryBranchTheStepsLatentsAndTimestep) {
  const auto job = with_negative(job_of(at::kFloat), 1, 2);
  std::vector<float> seen;
  const Predict watch = [&](const DenoiserInput& in) {
    seen.push_back(in.timestep_B[0].item<float>());
    EXPECT_TRUE(at::equal(in.noise.x_BLC, job.latents_BNC));
    return at::zeros_like(in.noise.x_BLC);
  };
  denoise(one_by_one(watch), {}, kSchedule, job, [](const StepTaken&) {});
  EXPECT_EQ(seen, std::vector<float>({1, 1, 0.75f, 0.75f, 0.25f, 0.25f}));
}

TEST(Denoise, TellsEachPredictionItsStep) {
  const auto job = with_negative(job_of(at::kFloat), 1, 2);
  std::vector<StepInfo> seen;
  const Predict watch = [&](const DenoiserInput& in) {
    seen.push_back(in.step);
    EXPECT_EQ(picture_of(in, 1).step.picture, 1);
    return at::zeros_like(in.noise.x_BLC);
  };
  denoise(one_by_one(watch), {}, kSchedule, job, [](const StepTaken&) {});
  ASSERT_EQ(seen.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    const auto& step = seen[std::size_t(i)];
    EXPECT_EQ(step.number, i / 2);
    EXPECT_EQ(step.timestep, kSchedule.timesteps[std::size_t(i / 2)]);
    EXPECT_EQ(step.branch, i % 2);
    EXPECT_EQ(step.picture, 0);
  }
}

// Branches share their controls; a control not followed in a step leaves the others' modulations
// unchanged.
TEST(Denoise, ModulatesControlNetsBeforeTheFirstStep) {
  auto job = with_negative(job_of(at::kFloat), 1, 2);
  for (auto& branch : job.branches)
    for (const double factor : {3.0, 5.0})
      branch.controls.push_back({.x_BNC = {}, .text = {}, .scale = at::full({}, factor)});
  job.followed = {{0, 0.5}, {0, 1}};
  const auto of_control = [](const DenoiserInput& in, std::size_t c) {
    return in.timestep_B.unsqueeze(-1) * in.controls[c].scale;
  };
  const Controls controls{.follow = {}, .modulate = [&](const auto& pictures, std::size_t c) {
                            std::vector<Tensor> made;
                            for (const auto& in : pictures) made.push_back(of_control(in, c));
                            return made;
                          }};
  modulate_controls(job, branches_of_evaluations(job, kSchedule), controls);
  std::vector<std::size_t> seen;
  const Predict watch = [&](const DenoiserInput& in) {
    seen.push_back(in.controls.size());
    EXPECT_FALSE(in.modulations_BM.defined());
    for (std::size_t c = 0; c < in.controls.size(); ++c)
      EXPECT_TRUE(at::equal(in.controls[c].modulations_BM, of_control(in, c)));
    return at::zeros_like(in.noise.x_BLC);
  };
  denoise(one_by_one(watch), {}, kSchedule, job, [](const StepTaken&) {});
  EXPECT_EQ(seen, std::vector<std::size_t>({2, 2, 1, 1, 1, 1}));
}

TEST(Denoise, CombinesBothBranchesOfTrueGuidance) {
  auto job = with_negative(job_of(at::kFloat), 1, 2);
  job.guidance.scale = 3;
  const Predict sum = [&](const DenoiserInput& in) {
    const auto value = in.text.x_BLC.select(1, 0).select(1, 0) + in.pooled_BC.select(1, 0);
    return value.view({2, 1, 1}).expand_as(in.noise.x_BLC).clone();
  };
  const Schedule once{.sigmas = {1, 0}, .timesteps = {1000}};
  const auto result = denoise(one_by_one(sum), {}, once, job, [](const StepTaken&) {});
  const auto positive = result.first_velocity_BNC, negative = positive + 3;
  const auto want = job.latents_BNC - (negative + 3 * (positive - negative));
  EXPECT_TRUE(at::allclose(result.latents_BNC, want, 1e-5, 1e-5));
}

// One step of velocity v from latents x, from sigma 1 to 0, ends at x - v: v follows from the
// result.
Tensor guided_velocity(const DenoiseJob& job, const Tensor& positive, const Tensor& negative) {
  const Predict predict = [&](const DenoiserInput& in) {
    return at::equal(in.text.x_BLC, job.branches.front().text.x_BLC) ? positive : negative;
  };
  const Schedule once{.sigmas = {1, 0}, .timesteps = {1000}};
  return job.latents_BNC -
         denoise(one_by_one(predict), {}, once, job, [](const StepTaken&) {}).latents_BNC;
}

DenoiseJob guided_job() {
  auto job = with_negative(job_of(at::kFloat), 1, 0);
  job.latents_BNC = at::zeros_like(job.latents_BNC);
  job.guidance.scale = 4;
  return job;
}

TEST(Denoise, GuidesFromThePositiveBranchToo) {
  auto job = guided_job();
  job.guidance.from = GuidedFrom::kPositive;
  const auto positive = at::randn({2, 6, 8}), negative = at::randn({2, 6, 8});
  const auto want = positive + 4 * (positive - negative);
  EXPECT_TRUE(at::allclose(guided_velocity(job, positive, negative), want, 1e-5, 1e-5));
}

// And zeros for the negative prompt.
Predict ones_for_the_prompt(const DenoiseJob& job) {
  return [text = job.branches.front().text.x_BLC](const DenoiserInput& in) {
    return at::full({2, 6, 8}, at::equal(in.text.x_BLC, text) ? 1.0f : 0.0f);
  };
}

// Steps begin at 0, 0.25 and 0.75 of the way; the levels fall by 0.25, 0.5 and 0.25.
TEST(Denoise, TurnsGuidanceOffBehindAPartOfTheWay) {
  auto job = guided_job();
  job.guidance.until = 0.25;
  const auto positive = at::ones({2, 6, 8});
  const auto predict = ones_for_the_prompt(job);
  const auto got =
      denoise(one_by_one(predict), {}, kSchedule, job, [](const StepTaken&) {}).latents_BNC;
  EXPECT_TRUE(at::allclose(got, positive * -(4 * 0.75 + 0.25)));
}

// A static shift may leave the last of inverted levels a rounding below 0.
TEST(Denoise, KeepsGuidanceToTheEndOfSchedulesThatPassIt) {
  auto job = guided_job();
  const auto positive = at::ones({2, 6, 8});
  const auto predict = ones_for_the_prompt(job);
  const Schedule beyond{.sigmas = {-1.2e-7f, 1}, .timesteps = {-1.2e-4f}};
  const auto end = [&] {
    return denoise(one_by_one(predict), {}, beyond, job, [](const StepTaken&) {}).latents_BNC;
  };
  EXPECT_TRUE(at::allclose(end(), positive * 4));
  job.guidance.way_from = 1000;
  EXPECT_TRUE(at::allclose(end(), positive)) << "as ZImagePipeline";
}

// ZImagePipeline takes 1000 for the timestep of noise, whatever the schedule says.
TEST(Denoise, MeasuresTheWayOfGuidanceFromAGivenTimestep) {
  auto job = guided_job();
  job.guidance.until = 0.25;
  const auto positive = at::ones({2, 6, 8});
  const auto predict = ones_for_the_prompt(job);
  const ScheduleConfig twice{.num_train_timesteps = 2000};
  const Schedule steps{.sigmas = {1, 0.75f, 0.25f, 0}, .timesteps = {2000, 1500, 500}};
  const auto end = [&] {
    return denoise(one_by_one(predict), twice, steps, job, [](const StepTaken&) {}).latents_BNC;
  };
  EXPECT_TRUE(at::allclose(end(), positive * -(4 * 0.75 + 0.25)));
  job.guidance.until = 0.4;
  job.guidance.way_from = 1000;  // steps begin at -1, -0.5 and 0.5 of the way
  EXPECT_TRUE(at::allclose(end(), positive * -(4 * 0.75 + 0.25)));
  job.guidance.until = 0.5;
  EXPECT_TRUE(at::allclose(end(), positive * -4));
}

TEST(Denoise, LeavesOutTheNegativeBranchWhereGuidanceIsOff) {
  auto job = guided_job();
  job.guidance.until = 0.25;
  std::vector<std::size_t> branches;
  const PredictAll watch = [&](const std::vector<DenoiserInput>& inputs) {
    branches.push_back(inputs.size());
    return std::vector(inputs.size(), at::zeros({2, 6, 8}));
  };
  denoise(watch, {}, kSchedule, job, [](const StepTaken&) {});
  EXPECT_EQ(branches, (std::vector<std::size_t>{2, 2, 1}));
  branches.clear();
  job.unguided = DenoiseJob::Unguided::kAllBranches;
  denoise(watch, {}, kSchedule, job, [](const StepTaken&) {});
  EXPECT_EQ(branches, (std::vector<std::size_t>{2, 2, 2}));
}

TEST(Denoise, KeepsLatentsInFloatUnderADenoiserInBfloat16) {
  const auto job = job_of(at::kFloat);
  const Predict third = [&](const DenoiserInput& in) {
    return at::full_like(in.noise.x_BLC, 1.0 / 3, at::kBFloat16);
  };
  const auto result = denoise(one_by_one(third), {}, kSchedule, job, [](const StepTaken&) {});
  EXPECT_EQ(result.latents_BNC.scalar_type(), at::kFloat);
  const auto velocity = at::full({}, 1.0 / 3, at::kBFloat16).to(at::kFloat);
  EXPECT_TRUE(at::allclose(result.latents_BNC, job.latents_BNC - velocity, 1e-6, 1e-6));
}

TEST(Denoise, CapsTheLengthOfEachPicturesGuidedVelocity) {
  auto job = guided_job();
  job.guidance.norm_cap = 1.5;
  const auto positive = at::randn({2, 6, 8});
  auto negative = -positive;        // guided: 7 times as long
  negative[1] = 0.9 * positive[1];  // guided: 1.3 times as long, within the cap
  const auto got = guided_velocity(job, positive, negative);
  EXPECT_TRUE(at::allclose(got[0], 1.5 * positive[0], 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(got[1], 1.3 * positive[1], 1e-5, 1e-5));
}

TEST(Denoise, RescalesGuidanceToTheSpreadOfThePositive) {
  auto job = guided_job();
  const auto positive = at::randn({2, 6, 8}) + 3, negative = at::randn({2, 6, 8});
  const auto guided = guided_velocity(job, positive, negative);
  job.guidance.rescale = 1;
  const auto whole = guided_velocity(job, positive, negative);
  for (const int i : {0, 1}) {
    EXPECT_NEAR(whole[i].std().item<double>(), positive[i].std().item<double>(), 1e-5);
    const auto ratio = positive[i].std() / guided[i].std();
    EXPECT_TRUE(at::allclose(whole[i], guided[i] * ratio, 1e-5, 1e-5));
  }
  job.guidance.rescale = 0.25;
  const auto quarter = guided_velocity(job, positive, negative);
  EXPECT_TRUE(at::allclose(quarter, 0.25 * whole + 0.75 * guided, 1e-5, 1e-5));
}

TEST(Denoise, AZeroVelocityStaysZeroHoweverItIsShaped) {
  auto job = guided_job();
  job.guidance.norm_cap = 1;
  job.guidance.rescale = 1;
  const auto zero = at::zeros({2, 6, 8});
  EXPECT_TRUE(at::equal(guided_velocity(job, zero, zero), zero));
}

TEST(Denoise, AStochasticStepAddsTheNoiseDrawnForIt) {
  auto job = job_of(at::kFloat);
  job.sampler = Sampler::kLcm;
  const auto noise = at::randn({2, 6, 8});
  job.draw_for_step = [&](const DenoiserInput& in) {
    EXPECT_TRUE(at::equal(in.noise.x_BLC, job.latents_BNC));
    return noise;
  };
  const Predict none = [](const DenoiserInput& in) { return at::zeros_like(in.noise.x_BLC); };
  const Schedule half{.sigmas = {1, 0.5f}, .timesteps = {1000}};
  const auto result =
      denoise(one_by_one(none), {.stochastic_sampling = true}, half, job, [](const StepTaken&) {});
  const auto want = 0.5 * job.latents_BNC + 0.5 * noise;
  EXPECT_TRUE(at::allclose(result.latents_BNC, want, 1e-6, 1e-6));
}

// Heun's second velocity is at the next level, from latents where the first leads.
TEST(Denoise, NumbersEvaluationsAcrossStepsThatTakeTwo) {
  auto job = with_negative(job_of(at::kFloat), 1, 2);
  job.sampler = Sampler::kHeun;
  const std::map<float, float> leads_to = {{1000, 750}, {750, 250}, {250, 0}};
  std::vector<std::tuple<int, float, int>> seen;
  const Predict watch = [&](const DenoiserInput& in) {
    seen.emplace_back(in.step.number, in.step.timestep, in.step.branch);
    EXPECT_EQ(in.timestep_B[0].item<float>() * 1000, in.step.timestep);
    EXPECT_EQ(in.step.next, leads_to.at(in.step.timestep));
    return at::ones_like(in.noise.x_BLC);
  };
  std::vector<int> done;
  const auto result = denoise(one_by_one(watch), {}, kSchedule, job,
                              [&](const StepTaken& taken) { done.push_back(taken.done); });
  const std::vector<std::tuple<int, float, int>> want = {
      {0, 1000, 0}, {0, 1000, 1}, {1, 750, 0}, {1, 750, 1}, {2, 750, 0},
      {2, 750, 1},  {3, 250, 0},  {3, 250, 1}, {4, 250, 0}, {4, 250, 1}};
  EXPECT_EQ(seen, want);
  EXPECT_EQ(done, std::vector<int>({1, 2, 3}));
  EXPECT_TRUE(at::allclose(result.latents_BNC, job.latents_BNC - 1, 1e-5, 1e-5));
}

// What is computed before the first step is asked of these.
TEST(Denoise, KnowsItsEvaluationsBeforeTheFirst) {
  for (const auto sampler : {Sampler::kEuler, Sampler::kDpm2, Sampler::kHeun}) {
    auto job = with_negative(job_of(at::kFloat), 1, 2);
    job.sampler = sampler;
    const auto known = branches_of_evaluations(job, kSchedule);
    EXPECT_EQ(known.size(), sampler == Sampler::kEuler ? 3u : 5u);
    std::size_t evaluation = 0;
    const PredictAll watch = [&](const std::vector<DenoiserInput>& branches) {
      std::vector<Tensor> velocities;
      const auto& want = known.at(evaluation++);
      EXPECT_EQ(branches.size(), want.size());
      for (std::size_t b = 0; b < branches.size(); ++b) {
        EXPECT_EQ(branches[b].step.number, want[b].step.number);
        EXPECT_EQ(branches[b].step.timestep, want[b].step.timestep);
        EXPECT_EQ(branches[b].step.next, want[b].step.next);
        EXPECT_EQ(branches[b].step.branch, want[b].step.branch);
        EXPECT_TRUE(at::equal(branches[b].timestep_B, want[b].timestep_B));
        velocities.push_back(at::zeros_like(branches[b].noise.x_BLC));
      }
      return velocities;
    };
    denoise(watch, {}, kSchedule, job, [](const StepTaken&) {});
    EXPECT_EQ(evaluation, known.size());
  }
}

// The latents of a sampler of ours are not rounded between steps of bfloat16.
TEST(Denoise, CarriesLatentsInFloatForSamplersThatLookBack) {
  auto job = job_of(at::kBFloat16);
  job.sampler = Sampler::kDpmpp2m;
  std::vector<Tensor> taken_from;
  const Predict third = [&](const DenoiserInput& in) {
    EXPECT_EQ(in.noise.x_BLC.scalar_type(), at::kBFloat16);
    return at::full_like(in.noise.x_BLC, 1.0 / 3);
  };
  const auto result = denoise(one_by_one(third), {}, kSchedule, job, [&](const StepTaken& taken) {
    taken_from.push_back(taken.latents_BNC);
  });
  EXPECT_EQ(result.latents_BNC.scalar_type(), at::kBFloat16);
  EXPECT_EQ(result.first_velocity_BNC.scalar_type(), at::kBFloat16);
  const auto velocity = at::full({}, 1.0 / 3, at::kBFloat16).to(at::kFloat);
  const auto x = job.latents_BNC.to(at::kFloat);
  EXPECT_TRUE(at::allclose(taken_from[1], x - 0.25 * velocity, 1e-6, 1e-6));
}

// What is kept is at the level of each evaluation, also of a second one within a step.
TEST(Denoise, KeepsARegionInEveryEvaluation) {
  auto job = job_of(at::kFloat);
  job.sampler = Sampler::kHeun;
  const auto clean = at::ones({2, 6, 8}), noise = at::full({2, 6, 8}, 3.0f);
  job.kept = KeptRegion{.clean_BNC = clean, .noise_BNC = noise, .mask_BNC = at::zeros({2, 6, 8})};
  job.latents_BNC = noise;
  const Predict watch = [&](const DenoiserInput& in) {
    const auto sigma = in.step.timestep / 1000;
    EXPECT_TRUE(at::allclose(in.noise.x_BLC, with_noise(clean, noise, sigma)));
    return at::full_like(in.noise.x_BLC, 7);
  };
  const auto result = denoise(one_by_one(watch), {}, kSchedule, job, [](const StepTaken&) {});
  EXPECT_TRUE(at::equal(result.latents_BNC, clean));
}

TEST(Denoise, EndsWhenTheObserverThrows) {
  int asked = 0;
  const Predict count = [&](const DenoiserInput& in) {
    ++asked;
    return at::zeros_like(in.noise.x_BLC);
  };
  EXPECT_THROW(denoise(one_by_one(count), {}, kSchedule, job_of(at::kFloat),
                       [](const StepTaken&) { throw Cancelled("x"); }),
               Cancelled);
  EXPECT_EQ(asked, 1);
}

}  // namespace braid::denoise_test
