#include "pipeline/planner/traffic.h"

namespace braid {
namespace {

// What the formulas have in common.
struct Terms {
  std::int64_t items;                  // passes through the blocks of the stage
  std::int64_t pictures;               // in all of them together
  std::int64_t blocks;                 // of the stage
  std::int64_t hidden, head, element;  // widths, and bytes
};

Traffic reduces_of(const PlanJob& job, const Stage& stage, const StepShare& s, const Terms& t) {
  std::int64_t reduces = 0, tokens = 0;
  for_each_kind(job.shape(), stage, [&](const BlockCost& kind, std::int64_t count) {
    reduces += count * kind.all_reduces;
    tokens += count * kind.all_reduces * s.tokens.of(kind);
  });
  return {.all_reduces = t.items * reduces, .bytes = t.pictures * tokens * t.hidden * t.element};
}

Traffic tensor_parallel(const PlanJob& job, const Degrees& grid, const Stage& stage,
                        const StepShare& s, const Terms& t) {
  if (grid.tp == 1) return {};
  Traffic traffic = reduces_of(job, stage, s, t);
  // of adaLN layers, a vector a picture
  const auto& part = job.tensors->of(Part::Role::kDenoiser);
  for (const auto& tensor : part.tensors) {
    const bool is_gathered =
        tensor.shared == PlannedTensor::Shared::kGathered && tensor.columns > 1;
    if (!is_gathered || !stage.holds(tensor, part.num_blocks())) continue;
    traffic.all_gathers += t.items;
    traffic.bytes += t.pictures * tensor.rows / grid.tp * t.element;
  }
  return traffic;
}

// Of all blocks of the stage together.
std::int64_t seen_by_blocks(const PlanJob& job, const Stage& stage, const TokenCounts& tokens) {
  std::int64_t sum = 0;
  for_each_kind(job.shape(), stage,
                [&](const BlockCost& kind, std::int64_t count) { sum += count * tokens.of(kind); });
  return sum;
}

Traffic ulysses(const PlanJob& job, const Degrees& grid, const Stage& stage, const StepShare& s,
                const Terms& t) {
  if (grid.ulysses == 1) return {};
  const auto there = s.sent_heads * seen_by_blocks(job, stage, s.tokens);
  const auto back = s.attended.q.count * seen_by_blocks(job, stage, s.group);
  return {.all_to_alls = 2 * t.items * t.blocks,
          .bytes = t.pictures * (there + back) * t.head * t.element};
}

Traffic ring(const PlanJob& job, const Degrees& grid, const Stage& stage, const StepShare& s,
             const Terms& t) {
  if (grid.ring == 1) return {};
  const auto token_bytes = 2 * t.pictures * s.attended.kept_kv() * t.head * t.element;
  const auto sent = job.layout.ring_form == RingForm::kGather ? s.keys : s.passed;
  const auto bytes = seen_by_blocks(job, stage, sent) * token_bytes;
  const auto blocks = t.items * t.blocks;
  if (job.layout.ring_form == RingForm::kGather) return {.all_gathers = blocks, .bytes = bytes};
  return {.shifts = blocks * (grid.ring - 1), .bytes = bytes};
}

}  // namespace

StepShare share_of_step(const PlanJob& job, const Degrees& grid, int rank) {
  const auto place = place_of(grid, rank);
  return share_of_step(job, grid.cfg,
                       {.tp = place.tp,
                        .tp_size = grid.tp,
                        .ring = place.ring,
                        .ring_size = grid.ring,
                        .ulysses = place.ulysses,
                        .ulysses_size = grid.ulysses});
}

std::int64_t items_of_batch(const PlanJob& job, const Degrees& grid) {
  return grid.layers == 1 ? 1 : job.batch_size;
}

namespace {

Terms terms_of(const PlanJob& job, const Degrees& grid, const Stage& stage, const StepShare& s) {
  return {.items = s.branches * items_of_batch(job, grid),
          .pictures = s.branches * s.batch,
          .blocks = stage.num_blocks,
          .hidden = job.shape().hidden,
          .head = job.shape().head_width,
          .element = job.element_bytes()};
}

}  // namespace

std::int64_t reduced_bytes(const PlanJob& job, const Degrees& grid, int rank) {
  const auto s = share_of_step(job, grid, rank);
  const auto stage = whole_transformer(job.shape());
  return reduces_of(job, stage, s, terms_of(job, grid, stage, s)).bytes;
}

TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank,
                              const Stage& stage) {
  const auto& shape = job.shape();
  const auto s = share_of_step(job, grid, rank);
  const auto t = terms_of(job, grid, stage, s);
  const auto velocities = [&](std::int64_t tokens) {
    return t.pictures * tokens * shape.out_width * t.element;
  };
  Traffic context, cfg, stages;
  if (grid.ring * grid.ulysses > 1)
    context = {.all_gathers = s.branches, .bytes = velocities(s.tokens.image)};
  if (grid.cfg > 1) cfg = {.all_gathers = 1, .bytes = velocities(job.image_tokens())};
  if (grid.layers > 1)
    stages = {.broadcasts = 1,
              .shifts = t.items + grid.layers - 1,
              .bytes = stage.is_last ? velocities(s.tokens.image)
                                     : t.pictures * (s.tokens.all() + shape.state_vectors) *
                                           t.hidden * t.element};
  return {{"tp", tensor_parallel(job, grid, stage, s, t)},
          {"ulysses", ulysses(job, grid, stage, s, t)},
          {"ring", ring(job, grid, stage, s, t)},
          {"context", context},
          {"stages", stages},
          {"cfg", cfg},
          {"dp", {}},
          {"replica", {}},
          {"world", {}}};
}

TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank) {
  return predict_traffic(job, grid, rank, whole_transformer(job.shape()));
}

}  // namespace braid
