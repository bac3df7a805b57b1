// Which denoiser evaluates what, and what is computed before the first step.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "pipeline/proofs/probe.h"
#include "pipeline/request/settings.h"

namespace braid::denoisers_test {

// Diffusers' Wan pipeline takes the first transformer where t >= boundary_ratio * 1000.
TEST(Served, IncludesItsLowerEndAndNotItsUpper) {
  const Served noisy{.from = 0.875}, clean{.to = 0.875};
  for (const auto& [timestep, is_noisy] :
       {std::pair(1000.0f, true), {875.0f, true}, {874.99994f, false}, {0.0f, false}}) {
    EXPECT_EQ(noisy.includes({.timestep = timestep}, 1000), is_noisy) << timestep;
    EXPECT_EQ(clean.includes({.timestep = timestep}, 1000), !is_noisy) << timestep;
  }
  EXPECT_TRUE(noisy.includes({.timestep = 1000.0001f}, 1000)) << "a rounding beyond noise";
  EXPECT_TRUE(clean.includes({.timestep = -0.0001f}, 1000));
}

TEST(Served, TellsBranchesApart) {
  const Served prompt{.branches = Served::BranchSet::kPrompt},
      others{.branches = Served::BranchSet::kOthers};
  for (const int branch : {0, 1}) {
    EXPECT_TRUE(Served().includes({.branch = branch}, 1000));
    EXPECT_EQ(prompt.includes({.branch = branch}, 1000), branch == 0);
    EXPECT_EQ(others.includes({.branch = branch}, 1000), branch == 1);
  }
}

// Krea 2 rounds up, JoyAI draws sizes that it was trained for.
TEST(Probe, HasTheSizeThatIsDrawn) {
  for (const auto* const model : {"krea2", "joy", "klein"}) {
    const auto folder = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity" / model;
    const auto deployment = deploy({.model = folder / "model"});
    const auto probed = probe_of({.width = 100, .height = 75}, deployment).size;
    const auto drawn = settle({.prompts = {""}, .width = 100, .height = 75},
                              deployment.family->description().limits, {})
                           .size();
    EXPECT_EQ(probed.width, drawn.width) << model;
    EXPECT_EQ(probed.height, drawn.height) << model;
  }
}

// Every step of every picture of a batch finds the modulations of its own timestep.
TEST(OncePerPicture, ModulatesAllStepsOfAllPictures) {
  const c10::InferenceMode no_autograd;
  const auto deployment =
      deploy({.model = BRAID_SOURCE_DIR "/models/demo", .dtype = Dtype::kFloat32});
  const auto probe = probe_of({.width = 32, .height = 32, .max_sequence_length = 8}, deployment);
  const auto denoisers = denoisers_of(Mesh(), deployment);
  std::vector<std::vector<DenoiserInput>> steps;
  for (int step = 0; step < 3; ++step) {
    auto& branches = steps.emplace_back();
    for (int branch = 0; branch < 2; ++branch) {
      const StepInfo info{
          .number = step, .timestep = 900.0f - 400.0f * float(step), .branch = branch};
      auto in = inputs_of(probe, 1, at::kCPU, info);
      const auto other = inputs_of(probe, 2, at::kCPU, info);
      visit_tensors(in, [](Tensor& x, const DimRoles& dims) {
        if (dims.batch != DimRoles::kNone) x = at::cat({x, x});
      });
      in.pooled_BC = at::cat({in.pooled_BC.narrow(0, 0, 1), other.pooled_BC});
      branches.push_back(std::move(in));
    }
  }
  const OncePerPicture once(*denoisers, steps);
  const auto& modulate = denoisers->list().front().denoiser->modulate();
  for (const auto& branches : steps) {
    const auto completed = once.completed(branches);
    for (std::size_t b = 0; b < branches.size(); ++b)
      for (int picture = 0; picture < 2; ++picture) {
        const auto want = modulate({picture_of(branches[b], picture)}).front();
        const auto got = completed[b].modulations_BM.narrow(0, picture, 1);
        EXPECT_TRUE(at::allclose(got, want, 1e-4, 1e-5)) << branches[b].step.number << b << picture;
      }
  }
  EXPECT_FALSE(at::allclose(once.completed(steps[0])[0].modulations_BM,
                            once.completed(steps[1])[0].modulations_BM));
}

// Heun's sampler evaluates a level at the end of a step and again at the beginning of the next.
TEST(OncePerPicture, ModulatesNeighboursOfALevelTogether) {
  const c10::InferenceMode no_autograd;
  const auto deployment =
      deploy({.model = BRAID_SOURCE_DIR "/models/demo", .dtype = Dtype::kFloat32});
  const auto probe = probe_of({.width = 32, .height = 32, .max_sequence_length = 8}, deployment);
  const auto denoisers = denoisers_of(Mesh(), deployment);
  const auto steps_at = [&](const std::vector<float>& timesteps) {
    std::vector<std::vector<DenoiserInput>> steps;
    for (const auto timestep : timesteps)
      steps.push_back(
          {inputs_of(probe, 1, at::kCPU, {.number = int(steps.size()), .timestep = timestep})});
    return steps;
  };
  const auto heun = steps_at({1000, 750, 750, 250, 250}), euler = steps_at({1000, 750, 250});
  const OncePerPicture of_heun(*denoisers, heun), of_euler(*denoisers, euler);
  EXPECT_EQ(of_heun.bytes().modulations, of_euler.bytes().modulations);
  for (const auto& [evaluation, step] : {std::pair(0u, 0u), {1, 1}, {2, 1}, {3, 2}, {4, 2}})
    EXPECT_TRUE(at::equal(of_heun.completed(heun[evaluation]).front().modulations_BM,
                          of_euler.completed(euler[step]).front().modulations_BM));
}

// Two tensors per picture and branch would stay beside what decodes, and in a server that rests.
TEST(CachedPictures, AreForgottenWithTheirLastStep) {
  const c10::InferenceMode no_autograd;
  const auto deployment = deploy({.model = BRAID_SOURCE_DIR "/models/demo",
                                  .dtype = Dtype::kFloat32,
                                  .cache = {.mode = CacheMode::kFirstBlock, .threshold = 0}});
  const auto probe = probe_of({.width = 32, .height = 32, .max_sequence_length = 8}, deployment);
  const auto denoisers = denoisers_of(Mesh(), deployment);
  {
    const CachedPictures cached(*denoisers);
    (void)denoisers->predict({inputs_of(probe, 1, at::kCPU, {.timestep = 900})});
    EXPECT_EQ(denoisers->full_steps(0), std::vector<int>{0});
    EXPECT_EQ(full_steps_of_round(*denoisers, Mesh(), 1, 3), std::vector<std::vector<int>>{{0}});
  }
  EXPECT_TRUE(denoisers->full_steps(0).empty());
}

}  // namespace braid::denoisers_test
