#include "pipeline/planner/planner.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/readable_bytes.h"
#include "parallel/pipeline_parallel.h"

namespace braid {
namespace {

// Usable fraction of a device's memory; drivers, their contexts and allocator gaps take the rest.
constexpr double kUsable = 0.95;

PlannedLayout out(const Degrees& grid, Obstacle obstacle, std::string reason) {
  return {.grid = grid, .obstacle = obstacle, .reason = std::move(reason)};
}

}  // namespace

std::optional<PlannedLayout> refused_layout(const PlanJob& job, const Degrees& g) {
  for (const auto& part : job.family->description().parts) {
    const bool is_shared =
        part.role == Part::Role::kDenoiser || part.role == Part::Role::kControl ||
        (part.role == Part::Role::kText && job.layout.text == TextRanks::kShared);
    if (is_shared && part.heads == Part::Heads::kAny && part.num_heads < g.tp)
      return out(
          g, Obstacle::kHeads,
          text_of("tp ", g.tp, " needs as many heads, ", part.label, " has ", part.num_heads));
    if (is_shared && part.heads == Part::Heads::kEven && part.num_heads % g.tp != 0)
      return out(g, Obstacle::kHeads,
                 text_of("tp ", g.tp, " cannot share the ", part.num_heads, " heads of ",
                         part.label, " evenly"));
    const auto kv_heads = part.num_kv_heads;
    if (is_shared && kv_heads > 0 && kv_heads % g.tp != 0 && g.tp % kv_heads != 0)
      return out(g, Obstacle::kHeads,
                 text_of("tp ", g.tp, " cannot share the ", kv_heads,
                         " heads of keys and values of ", part.label, " evenly"));
  }
  const auto context = std::int64_t(g.ring) * g.ulysses;
  const bool image_is_short = job.image_tokens() < context;
  const bool splits_text = job.shape().text != TextTokens::kCross;
  if (image_is_short || (splits_text && job.padded_text_tokens() < context))
    return out(g, Obstacle::kTokens,
               text_of("ring x ulysses of ", context, " needs as many ",
                       image_is_short ? "image" : "text", " tokens, there are ",
                       image_is_short ? job.image_tokens() : job.padded_text_tokens()));
  if (g.cfg > job.branches)
    return out(g, Obstacle::kBranches,
               text_of("cfg ", g.cfg, " needs as many branches, there ",
                       job.branches == 1 ? "is 1: no negative prompt" : "are 2"));
  if (g.dp > job.num_pictures)
    return out(g, Obstacle::kPictures,
               text_of("dp ", g.dp, " needs as many pictures, there ",
                       job.num_pictures == 1 ? "is 1" : text_of("are ", job.num_pictures)));
  const auto blocks = job.shape().num_blocks();
  if (g.pp > blocks)
    return out(g, Obstacle::kBlocks,
               text_of("pipeline parallelism ", g.pp, " needs as many blocks, there are ", blocks));
  return {};
}

namespace {

// Measures the rank of each stage that has the most: the first one of the first pipeline.
void measure_as_asked(const PlanJob& job, const Machine& machine, const std::vector<Stage>& stages,
                      PlannedLayout& layout) {
  const auto& g = layout.grid;
  const int stride = strides_of(g).pp;
  layout.first_rank = predict_bytes(job, g, 0, stages.front());
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
    const auto stage = std::size_t(rank / stride % g.pp);
    // Ranks of a stage differ by at most one token: check the first that is not rank 0, which also
    // has a share of the text encoders if any other rank has one.
    const bool is_new = rank < 2 || (rank % stride == 0 && rank / stride < g.pp);
    const bool differs =
        machine.devices[std::size_t(rank)].memory != machine.devices[std::size_t(rank - 1)].memory;
    if (!is_new && !differs) continue;
    const auto bytes = predict_bytes(job, g, rank, stages[stage]);
    if (bytes.peak() > layout.largest_other.peak()) layout.largest_other = bytes;
    look(rank, bytes);
  }
  if (needs <= has) return;
  layout.obstacle = Obstacle::kMemory;
  layout.reason = text_of("not enough memory: a rank needs ", readable_bytes(needs),
                          ", its device has ", readable_bytes(has), " to use");
}

// As a run does, drops a recorded step before decoding only if it has to.
void measure(PlanJob job, const Machine& machine, const std::vector<Stage>& stages,
             PlannedLayout& layout) {
  measure_as_asked(job, machine, stages, layout);
  if (layout.fits() || job.memory.recorded_step == RecordedStep::kDropped) return;
  job.memory.recorded_step = RecordedStep::kDropped;
  PlannedLayout dropped{.grid = layout.grid};
  measure_as_asked(job, machine, stages, dropped);
  layout = std::move(dropped);
}

// Pictures a rank denoises together: pipeline parallelism takes one batch per stage.
int pictures_at_once(const PlanJob& job, const Degrees& g) {
  return std::min(job.batch_size * g.pp, (job.num_pictures + g.dp - 1) / g.dp);
}

}  // namespace

// As blocks_of_rank() does in a run.
std::vector<Stage> plan_stages(const PlanJob& job, const Machine& machine, const Degrees& g) {
  const auto& shape = job.shape();
  if (g.pp == 1) return {whole_transformer(shape)};
  std::vector<double> room(std::size_t(g.pp), INFINITY);
  bool all_host = true;
  const int stride = strides_of(g).pp;
  double others = 0;
  for (int rank = 0; rank < g.product(); ++rank) {
    const auto& device = machine.devices[std::size_t(rank)];
    auto& least = room[std::size_t(rank / stride % g.pp)];
    // beyond the ranks that may share the text encoders, all are alike
    if (rank <= g.tp) others = double(bytes_of_others(job, g, rank).weights());
    least = std::min(least, device.memory - others);
    all_host = all_host && device.name == "cpu";
  }
  for (auto& bytes : room) bytes = std::max(bytes, 1.0);
  const auto sizes = block_parameters(*job.family, *job.tensors);
  std::vector<Stage> stages;
  for (int stage = 0; stage < g.pp; ++stage)
    if (all_host)
      stages.push_back(stage_of(shape, share_of(std::int64_t(sizes.size()), stage, g.pp)));
  if (!all_host)
    for (const auto& run : runs_in_proportion(sizes, room)) stages.push_back(stage_of(shape, run));
  return stages;
}

PlannedLayout plan_layout(const PlanJob& whole_job, const Machine& machine, const Degrees& grid) {
  if (auto refused = refused_layout(whole_job, grid)) return *std::move(refused);
  auto job = surveyed(whole_job);
  job.batch_size = pictures_at_once(whole_job, grid);
  const auto stages = plan_stages(job, machine, grid);
  PlannedLayout layout{.grid = grid};
  measure(job, machine, stages, layout);
  layout.traffic = predict_traffic(job, grid, 0, stages.front());
  layout.step = predict_time(job, grid, machine, stages);
  const int at_once = job.batch_size * grid.dp;
  const int rounds = (job.num_pictures + at_once - 1) / at_once;
  layout.seconds_per_picture =
      job.evaluations() * layout.step.total() * rounds / double(job.num_pictures);
  return layout;
}

std::vector<PlannedLayout> plan_layouts(const PlanJob& any_job, const Machine& machine) {
  const auto job = surveyed(any_job);
  std::vector<PlannedLayout> layouts;
  for (const auto& grid : grids_of(int(machine.devices.size())))
    layouts.push_back(plan_layout(job, machine, grid));
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const PlannedLayout& a, const PlannedLayout& b) {
                     if (a.obstacle != b.obstacle) return a.obstacle < b.obstacle;
                     return a.seconds_per_picture < b.seconds_per_picture;
                   });
  return layouts;
}

}  // namespace braid
