// A rank that computes slower than others, by a known multiple: with shares to match, a step takes
// hardly longer than if all work were divided ideally.
//
// Time is virtual, so that a busy machine changes nothing: a rank's clock advances by the products
// and attentions that it computes (ops/record.h) times its multiple. In a collective all wait for
// the last.
#include <ATen/record_function.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "comm/axis_traffic.h"
#include "comm/thread.h"
#include "models/flux/model.h"
#include "models/flux/sharding.h"
#include "parallel/layout.h"

namespace braid::delayed_rank_test {

// Sizes at which what each rank repeats (embedders, the last layer) is small, as in real models.
const FluxConfig kConfig{.in_channels = 8,
                         .out_channels = 8,
                         .num_double = 2,
                         .num_single = 2,
                         .num_heads = 12,
                         .head_width = 16,
                         .text_width = 16,
                         .pooled_width = 8,
                         .axes = {4, 6, 6}};

// Virtual seconds of one rank, by the number of collectives before.
using Clock = std::vector<double>;

struct Counting {
  const Mesh& mesh;
  double multiple;
  Clock& clock;
};
thread_local const Counting* counting = nullptr;

std::size_t collectives_of(const Mesh& mesh) {
  std::int64_t count = 0;
  for (const auto& [axis, t] : traffic_of(mesh))
    count += t.all_reduces + t.all_gathers + t.all_to_alls + t.broadcasts + t.shifts;
  return std::size_t(count);
}

// Products tell three sizes, attention four.
double flops_of(const at::RecordFunction& op) {
  const auto sizes = op.inputs();
  if (sizes.size() < 3) return 0;
  double flops = sizes.size() == 3 ? 2 : 4;
  for (const auto& size : sizes) flops *= double(size.toInt());
  return flops;
}

bool is_ours(const at::RecordFunction& op) {
  return std::string_view(op.name()).starts_with("braid::");
}

// One operation may be made of others: the outermost counts.
thread_local int running = 0;

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& op) {
  if (!counting || !is_ours(op) || running++ > 0) return nullptr;
  auto& clock = counting->clock;
  const auto moment = collectives_of(counting->mesh);
  clock.resize(std::max(clock.size(), moment + 1));
  clock[moment] += counting->multiple * flops_of(op);
  return nullptr;
}

void end(const at::RecordFunction& op, at::ObserverContext*) {
  if (counting && is_ours(op)) --running;
}

// Delays a rank's prediction: what it computes takes `multiple` times as long by its clock.
PredictPart delayed(PredictPart predict, const Mesh& mesh, double multiple, Clock& clock) {
  return [=, &mesh, &clock](const DenoiserInput& in, const Tensor& state) {
    const Counting mine{mesh, multiple, clock};
    const auto callback = at::addThreadLocalCallback(at::RecordFunctionCallback(&begin, &end)
                                                         .needsInputs(true)
                                                         .scopes({at::RecordScope::FUNCTION}));
    counting = &mine;
    auto predicted = predict(in, state);
    counting = nullptr;
    at::removeCallback(callback);
    return predicted;
  };
}

DenoiserInput input() {
  constexpr std::int64_t kImage = 96, kText = 48;
  const auto ids = [](std::int64_t count) {
    return at::arange(count, at::kFloat).unsqueeze(1).expand({count, 3}).contiguous();
  };
  return {.noise = {at::full({1, kImage, kConfig.in_channels}, 0.1), ids(kImage)},
          .text = {at::full({1, kText, kConfig.text_width}, 0.2), ids(kText)},
          .pooled_BC = at::full({1, kConfig.pooled_width}, 0.3),
          .timestep_B = at::full({1}, 0.5)};
}

// The clocks of all ranks after one step; `multiples` by rank.
std::vector<Clock> clocks_of_step(const Degrees& grid, const std::vector<double>& multiples) {
  std::vector<Clock> clocks(multiples.size());
  run_ranks({.size = grid.product()}, [&](const Group& world) {
    const c10::InferenceMode no_autograd;
    const auto rank = std::size_t(world.rank());
    const auto mesh = make_mesh(world, grid);
    auto part = part_of(std::make_shared<const Flux>(
        kConfig,
        Weights::synthetic({.tensor_parallel = mesh.tp},
                           flux_sharding(kConfig, SharedModulation::kYes)),
        attend_over(mesh)));
    auto in = input();
    in.modulations_BM = modulate_over(mesh.pp, part)({in}).front();  // before the first step
    part.predict = delayed(part.predict, mesh, multiples[rank], clocks[rank]);
    (void)predict_over(mesh, part)({in});
  });
  return clocks;
}

double sum(const Clock& clock) { return std::accumulate(clock.begin(), clock.end(), 0.0); }

double seconds_of_step(const std::vector<Clock>& clocks) {
  Clock slowest;
  for (const auto& clock : clocks) {
    slowest.resize(std::max(slowest.size(), clock.size()));
    for (std::size_t i = 0; i < clock.size(); ++i) slowest[i] = std::max(slowest[i], clock[i]);
  }
  return sum(slowest);
}

// How often the ideal a step takes: all work of one rank, divided without remainder or repetition
// among ranks that compute at 1 / multiple.
double times_the_ideal(const Degrees& grid, const std::vector<double>& multiples) {
  static const auto kWhole = sum(clocks_of_step({}, {1}).front());
  double speed = 0;
  for (const double multiple : multiples) speed += 1 / multiple;
  return seconds_of_step(clocks_of_step(grid, multiples)) / (kWhole / speed);
}

struct Case {
  const char* name;
  Degrees grid;  // with shares to match
  std::vector<double> multiples;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const Case kCases[] = {
    {"TensorParallel", {.tp = 2, .shares = {.tp = {2, 1}}}, {1, 2}},
    {"TensorParallelOfThree", {.tp = 3, .shares = {.tp = {3, 2, 1}}}, {1, 1.5, 3}},
    {"SlowFirst", {.tp = 2, .shares = {.tp = {1, 3}}}, {3, 1}},
    {"Ring", {.ring = 2, .shares = {.ring = {2, 1}}}, {1, 2}},
    {"RingOfThree", {.ring = 3, .shares = {.ring = {2, 1, 2}}}, {1, 2, 1}},
    {"Ulysses", {.ulysses = 2, .shares = {.ulysses = {2, 1}}}, {1, 2}},
    {"RingAndTensorParallel",
     {.ring = 2, .tp = 2, .shares = {.ring = {2, 1}, .tp = {2, 1}}},
     {1, 2, 2, 4}},
};

class DelayedRank : public testing::TestWithParam<Case> {};

TEST_P(DelayedRank, WithASmallerShareHardlyDelaysAStep) {
  const auto& [name, grid, multiples] = GetParam();
  EXPECT_LE(times_the_ideal(grid, multiples), 1.1);
}

// As the clock says, too: all would wait for the slow one.
TEST_P(DelayedRank, WithAnEqualShareDelaysIt) {
  auto [name, grid, multiples] = GetParam();
  grid.shares = {};
  EXPECT_GE(times_the_ideal(grid, multiples), 1.3);
}

INSTANTIATE_TEST_SUITE_P(Each, DelayedRank, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// No rank is slower than another: shares then do harm.
TEST(DelayedRank, ThatIsNotSlowShouldNotHaveASmallerShare) {
  EXPECT_LE(times_the_ideal({.tp = 2}, {1, 1}), 1.1);
  EXPECT_GE(times_the_ideal({.tp = 2, .shares = {.tp = {2, 1}}}, {1, 1}), 1.3);
}

}  // namespace braid::delayed_rank_test
