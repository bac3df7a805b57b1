#include "pipeline/planner/traffic.h"

namespace braid {
namespace {

// What the formulas have in common.
struct Terms {
  std::int64_t items;     // passes through the blocks of the stage
  std::int64_t pictures;  // in all of them together
  std::int64_t blocks;    // of the stage
  std::int64_t hidden, head, element;
};

Traffic tensor_parallel(const PlanJob& job, const Grid& grid, const Stage& stage,
                        const StepShare& s, const Terms& t) {
  if (grid.tp == 1) return {};
  const auto reduces = 2 * stage.num_double + stage.num_single;
  Traffic traffic{.all_reduces = t.items * reduces,
                  .bytes = t.pictures * reduces * s.tokens() * t.hidden * t.element};
  if (job.modulation == SharedModulation::kNo) return traffic;
  // two layers of six vectors in a double block, one of three in a single block, one of two at last
  const auto layers = 2 * stage.num_double + stage.num_single + stage.is_last;
  const auto vectors = 12 * stage.num_double + 3 * stage.num_single + 2 * stage.is_last;
  traffic.all_gathers = t.items * layers;
  traffic.bytes += t.pictures * vectors * t.hidden / grid.tp * t.element;
  return traffic;
}

Traffic ulysses(const Grid& grid, const StepShare& s, const Terms& t) {
  if (grid.ulysses == 1) return {};
  const auto there = 3 * s.heads * s.tokens(), back = s.attended_heads * s.group_tokens;
  return {.all_to_alls = 2 * t.items * t.blocks,
          .bytes = t.pictures * t.blocks * (there + back) * t.head * t.element};
}

Traffic ring(const PlanJob& job, const Grid& grid, const StepShare& s, const Terms& t) {
  if (grid.ring == 1) return {};
  const auto token_bytes = 2 * t.pictures * t.blocks * s.attended_heads * t.head * t.element;
  const auto blocks = t.items * t.blocks;
  if (job.ring_form == RingForm::kGather)
    return {.all_gathers = blocks, .bytes = s.group_tokens * token_bytes};
  return {.shifts = blocks * (grid.ring - 1), .bytes = s.passed_tokens * token_bytes};
}

}  // namespace

StepShare share_of_step(const PlanJob& job, const Grid& grid, int rank) {
  const auto place = place_of(grid, rank);
  return share_of_step(job, grid.tp, grid.cfg,
                       {.ring = place.ring,
                        .ring_size = grid.ring,
                        .ulysses = place.ulysses,
                        .ulysses_size = grid.ulysses});
}

std::int64_t items_of_batch(const PlanJob& job, const Grid& grid) {
  return grid.layers == 1 ? 1 : job.batch_size;
}

TrafficByAxis predict_traffic(const PlanJob& job, const Grid& grid, int rank, const Stage& stage) {
  const auto& flux = job.model.flux;
  const auto s = share_of_step(job, grid, rank);
  const Terms t{.items = s.branches * items_of_batch(job, grid),
                .pictures = s.branches * s.batch,
                .blocks = stage.num_double + stage.num_single,
                .hidden = flux.hidden(),
                .head = flux.head_width,
                .element = job.element_bytes()};
  const auto velocities = [&](std::int64_t tokens) {
    return t.pictures * tokens * flux.out_channels * t.element;
  };
  Traffic context, cfg, stages, world;
  if (grid.ring * grid.ulysses > 1)
    context = {.all_gathers = s.branches, .bytes = velocities(s.image_tokens)};
  if (grid.cfg > 1) cfg = {.all_gathers = 1, .bytes = velocities(job.image_tokens())};
  if (grid.layers > 1)
    stages = {.broadcasts = 1,
              .shifts = t.items + grid.layers - 1,
              .bytes = stage.is_last ? velocities(s.image_tokens)
                                     : t.pictures * (s.tokens() + 1) * t.hidden * t.element};
  if (grid.ranks() > 1) world = {.broadcasts = 1, .bytes = 1};
  return {{"tp", tensor_parallel(job, grid, stage, s, t)},
          {"ulysses", ulysses(grid, s, t)},
          {"ring", ring(job, grid, s, t)},
          {"context", context},
          {"stages", stages},
          {"cfg", cfg},
          {"dp", {}},
          {"replica", {}},
          {"world", world}};
}

TrafficByAxis predict_traffic(const PlanJob& job, const Grid& grid, int rank) {
  return predict_traffic(job, grid, rank, whole_transformer(job.model.flux));
}

}  // namespace braid
