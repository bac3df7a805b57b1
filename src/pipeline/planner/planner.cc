#include "pipeline/planner/planner.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/readable_bytes.h"
#include "parallel/pipeline_parallel.h"
#include "parallel/refusals.h"

namespace braid {
namespace {

// Usable fraction of a device's memory; drivers, their contexts and allocator gaps take the rest.
constexpr double kUsable = 0.95;

PlannedLayout out(const Degrees& grid, Obstacle obstacle, std::string reason) {
  return {.grid = grid, .obstacle = obstacle, .reason = std::move(reason)};
}

StepTime times(StepTime evaluation, int count) {
  auto& e = evaluation;
  for (auto* const seconds : {&e.compute, &e.memory, &e.gaps, &e.bubbles, &e.copies})
    *seconds *= count;
  for (auto& [axis, seconds] : e.communication) seconds *= count;
  return evaluation;
}

}  // namespace

std::optional<PlannedLayout> refused_layout(const PlanJob& job, const Degrees& g) {
  for (const auto& part : job.family->description().parts) {
    const bool is_shared =
        part.role == Part::Role::kDenoiser || part.role == Part::Role::kControl ||
        (part.role == Part::Role::kText && job.layout.text == TextRanks::kShared);
    if (!is_shared || part.num_heads == 0) continue;
    if (least_share(part.num_heads, g.of_tp()) == 0)
      return out(g, Obstacle::kHeads,
                 text_of("tp ", in_words(g.of_tp()), " leaves a rank without a head: ", part.label,
                         " has ", part.num_heads));
    if (!job.tensors || g.tp == 1) continue;
    if (const auto reason = job.figures->why_not_shared(job.tensors->of(part), g.of_tp()))
      return out(g, Obstacle::kHeads, *reason);
  }
  const auto context = g.of_context();
  const bool image_is_short = least_share(job.image_tokens(), context) == 0;
  const bool splits_text = job.shape().text != TextTokens::kCross;
  if (image_is_short || (splits_text && least_share(job.padded_text_tokens(), context) == 0))
    return out(g, Obstacle::kTokens,
               image_is_short ? too_few_tokens(context, "image", job.image_tokens())
                              : too_few_tokens(context, "text", job.padded_text_tokens()));
  for (const auto tokens : job.pictures.references)
    if (least_share(tokens, context) == 0)
      return out(g, Obstacle::kTokens, too_few_tokens(context, "reference", tokens));
  if (g.cfg > job.branches)
    return out(g, Obstacle::kBranches, too_few_branches(g.cfg, job.branches));
  if (least_share(job.num_pictures, g.of_dp()) == 0)
    return out(g, Obstacle::kPictures,
               text_of("dp ", in_words(g.of_dp()), " leaves a rank without a picture, there ",
                       job.num_pictures == 1 ? "is 1" : text_of("are ", job.num_pictures)));
  const auto blocks = job.shape().num_blocks();
  if (least_share(blocks, g.of_pp()) == 0)
    return out(g, Obstacle::kBlocks, too_few_blocks(g.of_pp(), blocks));
  return {};
}

namespace {

// Measures the rank of each stage that has the most: the first one of the first pipeline.
void measure_as_asked(const PlanJob& job, const Machine& machine, const std::vector<Stage>& stages,
                      PlannedLayout& layout) {
  const auto& g = layout.grid;
  layout.first_rank = predict_bytes(job_of_rank(job, g, 0), g, 0, stages.front());
  double needs = 0, has = 0;  // of the rank that lacks most
  const auto look = [&](int rank, const RankBytes& bytes) {
    const auto usable = kUsable * machine.devices[std::size_t(rank)].memory;
    const auto needed = double(needed_bytes(job, bytes));
    if (needed - usable > needs - has) {
      needs = needed;
      has = usable;
    }
  };
  look(0, layout.first_rank);
  for (int rank = 1; rank < g.product(); ++rank) {
    const int stage = place_of(g, rank).pp;
    // Ranks of a stage differ by at most one token: check the first that is not rank 0, which also
    // has a share of the text encoders if any other rank has one.
    const bool is_new =
        g.shares != AxisShares{} || rank < 2 || rank == stage * stride_along(g, &Degrees::pp);
    const bool differs =
        machine.devices[std::size_t(rank)].memory != machine.devices[std::size_t(rank - 1)].memory;
    if (!is_new && !differs) continue;
    const auto bytes =
        predict_bytes(job_of_rank(job, g, rank), g, rank, stages[std::size_t(stage)]);
    if (bytes.peak() > layout.largest_other.peak()) layout.largest_other = bytes;
    look(rank, bytes);
  }
  if (needs <= has) return;
  layout.obstacle = Obstacle::kMemory;
  layout.reason = text_of("not enough memory: a rank needs ", readable_bytes(needs),
                          ", its device has ", readable_bytes(has), " to use");
}

// Drops a recorded step before decoding only if it has to, as a run does.
void measure(PlanJob job, const Machine& machine, const std::vector<Stage>& stages,
             PlannedLayout& layout) {
  measure_as_asked(job, machine, stages, layout);
  if (layout.fits() || job.memory.recorded_step == RecordedStep::kDropped) return;
  job.memory.recorded_step = RecordedStep::kDropped;
  PlannedLayout dropped{.grid = layout.grid};
  measure_as_asked(job, machine, stages, dropped);
  layout = std::move(dropped);
}

}  // namespace

std::vector<Stage> plan_stages(const PlanJob& job, const Machine& machine, const Degrees& g) {
  const auto& shape = job.shape();
  if (g.pp == 1) return {whole_transformer(shape)};
  std::vector<StageMemory> memory(std::size_t(g.pp), {.is_host = false, .free_bytes = INT64_MAX});
  constexpr double kMostBytes = 1e18;  // for whole numbers
  double others = 0;
  for (int rank = 0; rank < g.product(); ++rank) {
    const auto& device = machine.devices[std::size_t(rank)];
    // beyond the ranks that may share the text encoders, all are alike
    if (rank <= g.tp) others = double(bytes_of_others(job, g, rank).weights());
    auto& stage = memory[std::size_t(place_of(g, rank).pp)];
    const auto free = std::int64_t(std::min(device.memory - others, kMostBytes));
    stage = joined_memory(stage, {.is_host = device.name == "cpu", .free_bytes = free});
  }
  std::vector<Stage> stages;
  for (const auto& run :
       runs_of_stages(block_parameters(*job.family, *job.tensors), g.of_pp(), memory))
    stages.push_back(stage_of(shape, run));
  return stages;
}

PlannedLayout plan_layout(const PlanJob& any_job, const Machine& machine, const Degrees& grid) {
  const auto whole_job = surveyed(any_job);
  if (auto refused = refused_layout(whole_job, grid)) return *std::move(refused);
  const auto job = job_on_grid(whole_job, grid);
  const auto stages = plan_stages(job, machine, grid);
  PlannedLayout layout{.grid = grid};
  measure(job, machine, stages, layout);
  const auto evaluation = predict_time(job, grid, machine, stages);
  layout.step = times(evaluation, job.evaluations_of_step());
  layout.traffic = times(predict_traffic(job_of_rank(job, grid, 0), grid, 0, stages.front()),
                         job.evaluations_of_step());
  const auto all = std::int64_t(job.num_pictures), round = pictures_of_round(whole_job, grid);
  const auto rounds = double((all + round - 1) / round);
  layout.seconds_per_picture = job.evaluations() * evaluation.total() * rounds / double(all);
  return layout;
}

namespace {

constexpr int kSpeedSteps = 8;  // shares by measured speed are eighths of the fastest rank's

// The slowest of the ranks at each place of an axis: they do the same share.
std::vector<double> speeds_along(const Axis& axis, const Degrees& g,
                                 const std::vector<double>& speed_of_ranks) {
  const auto degree = std::size_t(g.*axis.degree),
             stride = std::size_t(stride_along(g, axis.degree));
  std::vector<double> speeds(degree, INFINITY);
  for (std::size_t rank = 0; rank < speed_of_ranks.size(); ++rank) {
    auto& slowest = speeds[rank / stride % degree];
    slowest = std::min(slowest, speed_of_ranks[rank]);
  }
  return speeds;
}

std::vector<int> eighths_of(const std::vector<double>& speeds) {
  const auto fastest = *std::ranges::max_element(speeds);
  std::vector<int> shares;
  for (const auto speed : speeds)
    shares.push_back(std::max(1, int(std::lround(kSpeedSteps * speed / fastest))));
  return shares;
}

// An eighth is a coarse unit for the slowest where it has less than two: it gets two then of so
// many steps that the others keep their proportion.
std::vector<int> steps_of(const std::vector<double>& speeds) {
  const auto [slowest, fastest] = std::ranges::minmax(speeds);
  const auto steps = std::min(double(kMostShare), std::round(2 * fastest / slowest));
  if (steps <= kSpeedSteps) return eighths_of(speeds);
  std::vector<int> shares;
  for (const auto speed : speeds)
    shares.push_back(std::max(1, int(std::lround(steps * speed / fastest))));
  const auto common =
      std::reduce(shares.begin(), shares.end(), 0, [](int a, int b) { return std::gcd(a, b); });
  for (auto& share : shares) share /= common;
  return shares;
}

using Rounded = std::vector<int> (*)(const std::vector<double>& speeds);

AxisShares shares_by(Rounded rounded, const Degrees& g, const std::vector<double>& speed_of_ranks) {
  if (std::ranges::adjacent_find(speed_of_ranks, std::ranges::not_equal_to()) ==
      speed_of_ranks.end())
    return {};
  AxisShares shares;
  for (const auto& axis : kAxes) {
    if (!axis.shares) continue;
    auto by_speed = rounded(speeds_along(axis, g, speed_of_ranks));
    if (!Shares(g.*axis.degree, by_speed).are_alike()) shares.*axis.shares = std::move(by_speed);
  }
  return shares;
}

std::vector<double> speeds_of(const Machine& machine) {
  std::vector<double> speeds;
  for (const auto& device : machine.devices)
    speeds.push_back(device.bfloat16_flops * device.reached);
  return speeds;
}

// The shares that were asked for, along the axes of their degrees.
AxisShares shares_asked(const AxisShares& asked, const Degrees& g) {
  AxisShares fitting;
  for (const auto& axis : kAxes)
    if (axis.shares && int((asked.*axis.shares).size()) == g.*axis.degree)
      fitting.*axis.shares = asked.*axis.shares;
  return fitting;
}

}  // namespace

AxisShares shares_by_speed(const Degrees& g, const std::vector<double>& speed_of_ranks) {
  return shares_by(eighths_of, g, speed_of_ranks);
}

AxisShares shares_by_speed(const Degrees& grid, const Machine& machine) {
  return shares_by(steps_of, grid, speeds_of(machine));
}

namespace {

// A share of the fastest that is less than a head or a block gives the slowest nothing: it then
// takes an eighth.
std::optional<PlannedLayout> layout_by_speed(const PlanJob& job, const Machine& machine,
                                             Degrees grid) {
  grid.shares = shares_by_speed(grid, machine);
  if (grid.shares == AxisShares{}) return {};
  auto layout = plan_layout(job, machine, grid);
  if (layout.fits() || layout.obstacle == Obstacle::kMemory) return layout;
  grid.shares = shares_by_speed(grid, speeds_of(machine));
  return grid.shares == AxisShares{} ? layout : plan_layout(job, machine, grid);
}

}  // namespace

std::vector<PlannedLayout> plan_layouts(const PlanJob& any_job, const Machine& machine,
                                        Division division) {
  const auto job = surveyed(any_job);
  std::vector<PlannedLayout> layouts;
  for (auto grid : grids_of(int(machine.devices.size()))) {
    grid.shares = shares_asked(job.layout.shares, grid);
    layouts.push_back(plan_layout(job, machine, grid));
    const bool are_asked = grid.shares != AxisShares{};
    if (division == Division::kAsAsked || are_asked) continue;
    if (auto by_speed = layout_by_speed(job, machine, grid))
      layouts.push_back(*std::move(by_speed));
  }
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const PlannedLayout& a, const PlannedLayout& b) {
                     if (a.obstacle != b.obstacle) return a.obstacle < b.obstacle;
                     return a.seconds_per_picture < b.seconds_per_picture;
                   });
  return layouts;
}

std::vector<OutOf> count_out(const std::vector<PlannedLayout>& layouts) {
  std::map<Obstacle, OutOf> by_obstacle;
  for (const auto& layout : layouts) {
    if (layout.fits()) continue;
    auto& out = by_obstacle.try_emplace(layout.obstacle, OutOf{0, &layout}).first->second;
    ++out.count;
  }
  std::vector<OutOf> counts;
  for (const auto& [obstacle, out] : by_obstacle) counts.push_back(out);
  std::stable_sort(counts.begin(), counts.end(),
                   [](const OutOf& a, const OutOf& b) { return a.count > b.count; });
  return counts;
}

}  // namespace braid
