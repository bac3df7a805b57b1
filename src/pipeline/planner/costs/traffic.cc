#include "pipeline/planner/costs/traffic.h"

#include "pipeline/planner/costs/denoisers.h"

namespace braid {
namespace {

void add(Traffic& sum, const Traffic& t) {
  sum.all_reduces += t.all_reduces;
  sum.all_gathers += t.all_gathers;
  sum.all_to_alls += t.all_to_alls;
  sum.broadcasts += t.broadcasts;
  sum.shifts += t.shifts;
  sum.bytes += t.bytes;
}

// Terms common to the formulas: what passes through which blocks.
struct Terms {
  std::int64_t items;     // passes through the stage's blocks
  std::int64_t pictures;  // in all of them together
  DenoiserShape shape;
  Stage stage;
  const PartTensors* tensors;
  std::int64_t element;  // bytes
  int tp_rank;
  bool has_prefix = false;  // causal by blocks, in every step
};

Traffic reduces_of(const StepShare& s, const Terms& t) {
  std::int64_t reduces = 0, tokens = 0;
  for_each_kind(t.shape, t.stage, [&](const BlockCost& kind, std::int64_t count) {
    if (s.tokens.of(kind) == 0) return;
    reduces += count * kind.all_reduces;
    tokens += count * kind.all_reduces * s.tokens.of(kind);
  });
  return {.all_reduces = t.items * reduces,
          .bytes = t.pictures * tokens * t.shape.hidden * t.element};
}

Traffic tensor_parallel(const Degrees& grid, const StepShare& s, const Terms& t) {
  if (grid.tp == 1) return {};
  Traffic traffic = reduces_of(s, t);
  // a step's adaLN layers gather one vector per picture
  for (const auto& tensor : t.tensors->tensors) {
    const bool is_gathered =
        tensor.shared == PlannedTensor::Shared::kGathered && tensor.columns > 1;
    const bool is_in_a_step = tensor.use == PageUse::kRepeated;
    if (!is_gathered || !is_in_a_step || !t.stage.holds(tensor, t.tensors->num_blocks())) continue;
    traffic.all_gathers += t.items;
    traffic.bytes += t.pictures * rows_of(tensor, grid.of_tp(), t.tp_rank) * t.element;
  }
  return traffic;
}

// Tokens over all blocks of the stage.
std::int64_t seen_by_blocks(const Terms& t, const TokenCounts& tokens) {
  std::int64_t sum = 0;
  for_each_kind(t.shape, t.stage,
                [&](const BlockCost& kind, std::int64_t count) { sum += count * tokens.of(kind); });
  return sum;
}

// Blocks of the stage that see any of the tokens.
std::int64_t blocks_of_stage(const Terms& t, const TokenCounts& tokens) {
  std::int64_t sum = 0;
  for_each_kind(t.shape, t.stage, [&](const BlockCost& kind, std::int64_t count) {
    if (tokens.of(kind) > 0) sum += count;
  });
  return sum;
}

constexpr std::int64_t kSpanBytes = 2 * sizeof(std::int32_t);

// Attention of a prefix in every step, and behind it: parallel/ulysses.h.
Traffic ulysses_of_prefix(const StepShare& s, const Terms& t) {
  const auto calls = t.items * blocks_of_stage(t, s.tokens), tokens = s.tokens.prefix();
  const auto before = t.pictures * s.sent_kv_heads * tokens * t.shape.head_width * t.element;
  return {.all_gathers = calls,
          .all_to_alls = 3 * calls,
          .bytes = blocks_of_stage(t, s.tokens) * (before + t.items * tokens * kSpanBytes)};
}

Traffic ulysses(const Degrees& grid, const StepShare& s, const Terms& t) {
  if (grid.ulysses == 1) return {};
  const auto there = s.sent_heads * seen_by_blocks(t, s.tokens);
  const auto back = s.attended.q.count * seen_by_blocks(t, s.group);
  Traffic traffic{.all_to_alls = 2 * t.items * blocks_of_stage(t, s.tokens),
                  .bytes = t.pictures * (there + back) * t.shape.head_width * t.element};
  if (t.has_prefix) add(traffic, ulysses_of_prefix(s, t));
  return traffic;
}

// A prefix in every step is gathered, in either form, with its spans.
Traffic ring_of_prefix(const StepShare& s, const Terms& t, std::int64_t token_bytes) {
  const auto calls = t.items * blocks_of_stage(t, s.tokens), tokens = s.group.prefix();
  return {.all_gathers = 2 * calls,
          .bytes = blocks_of_stage(t, s.tokens) * tokens * (token_bytes + t.items * kSpanBytes)};
}

Traffic ring(RingForm form, const Degrees& grid, const StepShare& s, const Terms& t) {
  if (grid.ring == 1) return {};
  const auto token_bytes = 2 * t.pictures * s.attended.kept_kv() * t.shape.head_width * t.element;
  const auto bytes = seen_by_blocks(t, form == RingForm::kGather ? s.keys : s.passed) * token_bytes;
  const auto blocks = t.items * blocks_of_stage(t, s.tokens);
  Traffic traffic{.bytes = bytes};
  (form == RingForm::kGather ? traffic.all_gathers : traffic.shifts) =
      form == RingForm::kGather ? blocks : blocks * (grid.ring - 1);
  if (t.has_prefix) add(traffic, ring_of_prefix(s, t, token_bytes));
  return traffic;
}

}  // namespace

std::int64_t items_of_batch(const PlanJob& job, const Degrees& grid) {
  return grid.pp == 1 ? 1 : job.batch_size;
}

namespace {

Terms terms_of(const PlanJob& job, const Degrees& grid, int rank, const Stage& stage,
               const StepShare& s) {
  return {.items = s.branches * items_of_batch(job, grid),
          .pictures = s.branches * s.batch,
          .shape = job.shape(),
          .stage = stage,
          .tensors = &tensors_of_first_step(job),
          .element = job.element_bytes(),
          .tp_rank = place_of(grid, rank).tp,
          .has_prefix = job.shape().text == TextTokens::kPrefix && !job.keeps_prefix()};
}

// Traffic inside blocks.
struct BlockTraffic {
  Traffic tp, ulysses, ring;
};

void add_blocks(BlockTraffic& sum, const PlanJob& job, const Degrees& grid, const StepShare& s,
                const Terms& t) {
  add(sum.tp, tensor_parallel(grid, s, t));
  add(sum.ulysses, ulysses(grid, s, t));
  add(sum.ring, ring(job.layout.ring_form, grid, s, t));
}

// The pictures of a batch whose ControlNets a rank evaluates: stages share them.
Share pictures_followed(const PlanJob& job, const Degrees& grid, int rank) {
  return share_of(job.batch_size, place_of(grid, rank).pp, grid.pp);
}

// Each ControlNet runs once for all branches: it sees no references, and with modes one extra
// token.
void add_controlnets(BlockTraffic& sum, const PlanJob& job, const Degrees& grid, int rank) {
  const auto followed = pictures_followed(job, grid, rank);
  const auto nets = job.family->parts(Part::Role::kControl);
  for (std::size_t net = 0; net < nets.size() && followed.count > 0; ++net) {
    auto seen = job;
    seen.pictures.references.clear();
    seen.text_tokens += job.family->description().limits.pictures.controlnet_modes[net] > 0;
    Terms t{.items = 1,
            .pictures = followed.count,
            .shape = job.shape(),
            .stage = {},
            .tensors = &job.tensors->of(*nets[net]),
            .element = job.element_bytes(),
            .tp_rank = place_of(grid, rank).tp};
    t.shape.blocks = nets[net]->costs;
    t.stage = whole_transformer(t.shape);
    add_blocks(sum, job, grid, share_of_step(seen, grid, rank), t);
  }
}

// Every stage gets the residuals of all pictures, for both kinds of blocks.
Traffic residuals_of(const PlanJob& job, const Degrees& grid, int rank, const StepShare& s) {
  if (job.family->parts(Part::Role::kControl).empty()) return {};
  const auto mine = pictures_followed(job, grid, rank).count * s.tokens.image;
  return {.broadcasts = 2 * std::min(job.batch_size, grid.pp),
          .bytes = mine * job.shape().residuals * job.shape().hidden * job.element_bytes()};
}

}  // namespace

std::int64_t reduced_bytes(const PlanJob& job, const Degrees& grid, int rank) {
  const auto s = share_of_step(job, grid, rank);
  return reduces_of(s, terms_of(job, grid, rank, whole_transformer(job.shape()), s)).bytes;
}

TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank,
                              const Stage& stage) {
  const auto& shape = job.shape();
  const auto s = share_of_step(job, grid, rank);
  const auto t = terms_of(job, grid, rank, stage, s);
  const auto velocities = [&](std::int64_t tokens) {
    return t.pictures * tokens * shape.out_width * t.element;
  };
  Traffic context, cfg, stages;
  if (grid.ring * grid.ulysses > 1)
    context = {.all_gathers = s.branches, .bytes = velocities(s.tokens.image)};
  if (grid.cfg > 1) cfg = {.all_gathers = 1, .bytes = velocities(job.image_tokens())};
  if (grid.pp > 1) {
    stages = {.broadcasts = 1,
              .shifts = t.items + grid.pp - 1,
              .bytes = stage.is_last ? velocities(s.tokens.image)
                                     : t.pictures * (s.tokens.all() + shape.state_vectors) *
                                           shape.hidden * t.element};
    add(stages, residuals_of(job, grid, rank, s));
  }
  BlockTraffic blocks;
  add_blocks(blocks, job, grid, s, t);
  add_controlnets(blocks, job, grid, rank);
  return {{"tp", blocks.tp},
          {"ulysses", blocks.ulysses},
          {"ring", blocks.ring},
          {"context", context},
          {"pp", stages},
          {"cfg", cfg},
          {"dp", {}},
          {"replica", {}},
          {"world", {}}};
}

TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank) {
  return predict_traffic(job, grid, rank, whole_transformer(job.shape()));
}

}  // namespace braid
