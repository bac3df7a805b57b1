// Samplers against their definitions in float64 and diffusers' schedulers
// (tools/parity/dump_samplers.py), and the order in which they converge.
#include "pipeline/sampling/solver.h"
#include "message_of.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace braid::solver_test {

Json golden() { return read_json(BRAID_SOURCE_DIR "/tests/data/parity/samplers.json"); }

Sampler sampler_named(const std::string& asked) {
  for (const auto& [name, sampler] : kSamplers)
    if (name == asked) return sampler;
  throw std::runtime_error(asked);
}

Schedule schedule_of(const std::vector<double>& sigmas) {
  Schedule schedule{.sigmas = {sigmas.begin(), sigmas.end()}};
  for (std::size_t i = 0; i + 1 < sigmas.size(); ++i)
    schedule.timesteps.push_back(schedule.timestep_of(schedule.sigmas[i]));
  return schedule;
}

Tensor tensor_of(const Json& numbers) {
  return at::tensor(numbers.get<std::vector<double>>(), at::kDouble).to(at::kFloat);
}

// The field and the noise of the fixture.
Tensor velocity(const Tensor& x, double sigma) { return at::tanh(1.3 * x) + 0.5 * sigma * x - 0.2; }
Tensor noise(int k) { return at::sin(1 + 3 * k + at::arange(5, at::kFloat)); }

using Field = std::function<Tensor(const Tensor& x, double sigma)>;

// x after each step.
std::vector<Tensor> run(Sampler sampler, const Schedule& schedule, Tensor x, const Field& field) {
  Solver solver(sampler, schedule);
  const auto evaluations = evaluations_of(sampler, schedule);
  std::size_t evaluation = 0;
  int draws = 0;
  std::vector<Tensor> states;
  for (std::size_t i = 0; i < schedule.timesteps.size(); ++i) {
    x = solver.step(
        x, [&](const Tensor& at) { return field(at, evaluations.at(evaluation++).sigma); },
        [&] { return noise(draws++); });
    states.push_back(x);
  }
  EXPECT_EQ(evaluation, evaluations.size());
  return states;
}

// Steps are in float32: 1e-6 of values up to 2, over up to six steps.
TEST(Solver, TakesEachSamplersStepsByDefinition) {
  const auto data = golden();
  int compared = 0;
  for (const auto& entry : data["runs"]) {
    const auto schedule = schedule_of(entry["sigmas"]);
    const auto states =
        run(sampler_named(entry["sampler"]), schedule, tensor_of(data["start"]), velocity);
    ASSERT_EQ(states.size(), entry["x"].size());
    for (std::size_t i = 0; i < states.size(); ++i)
      EXPECT_TRUE(at::allclose(states[i], tensor_of(entry["x"][i]), 2e-6, 2e-6))
          << entry["sampler"] << " step " << i << "\n"
          << states[i] << entry["x"][i];
    ++compared;
  }
  EXPECT_EQ(compared, 18);
}

// The velocity for a Gaussian picture of mean m and deviation c is known, and where its flow leads:
// the distance from the mean grows with the deviation of what is seen.
double deviation(double sigma) { return std::hypot((1 - sigma) * 0.6, sigma); }
double mean(double sigma) { return (1 - sigma) * 0.8; }
Tensor gaussian_velocity(const Tensor& x, double sigma) {
  const double gain = (1 - sigma) * 0.36 / (deviation(sigma) * deviation(sigma));
  return (x - (0.8 + gain * (x - mean(sigma)))) / sigma;
}

double error_of(Sampler sampler, int steps) {
  const double first = 0.95, last = 0.05;
  std::vector<double> sigmas;
  for (int i = 0; i <= steps; ++i)
    sigmas.push_back(first * std::pow(last / first, double(i) / steps));
  const double begin = mean(first) + 1.5 * deviation(first);
  const auto end =
      run(sampler, schedule_of(sigmas), at::full({1}, begin), gaussian_velocity).back();
  return std::abs(end.item<double>() - (mean(last) + 1.5 * deviation(last)));
}

// Half the steps leave 2^order times the error. float32 ends the line near 1e-6.
TEST(Solver, ConvergesInItsOrder) {
  EXPECT_NEAR(std::log2(error_of(Sampler::kEuler, 16) / error_of(Sampler::kEuler, 32)), 1, 0.15);
  for (const auto sampler : {Sampler::kHeun, Sampler::kDpm2})
    EXPECT_NEAR(std::log2(error_of(sampler, 8) / error_of(sampler, 16)), 2, 0.4)
        << sampling_name(kSamplers, sampler);
  // Steps that look back begin as Euler's and are of the second order in the limit.
  for (const auto sampler : {Sampler::kDpmpp2m, Sampler::kResMultistep})
    EXPECT_NEAR(std::log2(error_of(sampler, 64) / error_of(sampler, 128)), 2, 0.2)
        << sampling_name(kSamplers, sampler);
}

TEST(Solver, EvaluatesTwiceInEveryStepButTheLast) {
  const auto schedule = schedule_of({1, 0.64, 0.25, 0});
  const auto levels = [&](Sampler sampler) {
    std::vector<double> sigmas;
    for (const auto& one : evaluations_of(sampler, schedule)) {
      sigmas.push_back(one.sigma);
      EXPECT_FLOAT_EQ(one.timestep, one.sigma * 1000);
    }
    return sigmas;
  };
  const auto rows = [&](Sampler sampler) {
    std::vector<int> rows;
    for (const auto& one : evaluations_of(sampler, schedule)) rows.push_back(one.row);
    return rows;
  };
  EXPECT_EQ(levels(Sampler::kEuler), (std::vector<double>{1, 0.64f, 0.25}));
  EXPECT_EQ(levels(Sampler::kHeun), (std::vector<double>{1, 0.64f, 0.64f, 0.25, 0.25}));
  EXPECT_EQ(levels(Sampler::kDpm2), (std::vector<double>{1, 0.8f, 0.64f, 0.4f, 0.25}));
  EXPECT_EQ(rows(Sampler::kHeun), (std::vector<int>{0, 1, 1, 2, 2}));
  EXPECT_EQ(rows(Sampler::kDpm2), (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Solver, KeepsOnlyEulersStepsInTheVelocitysDtype) {
  const auto x = at::ones({3}, at::kBFloat16);
  for (const auto& [name, sampler] : kSamplers) {
    const bool is_ours = sampler != Sampler::kEuler && sampler != Sampler::kLcm;
    EXPECT_EQ(Solver(sampler, schedule_of({1, 0})).carried(x).scalar_type(),
              is_ours ? at::kFloat : at::kBFloat16)
        << name;
  }
}

}  // namespace braid::solver_test
