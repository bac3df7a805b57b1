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

// What passes through which blocks: terms common to the formulas.
struct EvaluationTerms {
  std::int64_t passes;           // through the stage's blocks
  std::int64_t pictures_passed;  // in all of them together
  DenoiserShape shape;
  Stage stage;
  const PartTensors* tensors;
  std::int64_t element_bytes;
  int tp_rank;
  bool has_prefix = false;  // causal by blocks, in every step
};

Traffic reduces_of(const StepShare& s, const EvaluationTerms& t) {
  std::int64_t reduces = 0, tokens = 0;
  for_each_kind(t.shape, t.stage, [&](const BlockCost& kind, std::int64_t count) {
    if (s.own_tokens.of(kind) == 0) return;
    reduces += count * kind.all_reduces;
    tokens += count * kind.all_reduces * s.own_tokens.of(kind);
  });
  return {.all_reduces = t.passes * reduces,
          .bytes = t.pictures_passed * tokens * t.shape.hidden * t.element_bytes};
}

// A step's adaLN layers gather one vector per picture.
Traffic gathers_of(const Degrees& grid, const EvaluationTerms& t) {
  Traffic traffic;
  for (const auto& tensor : t.tensors->tensors) {
    const bool is_gathered =
        tensor.shared == PlannedTensor::Shared::kGathered && tensor.columns > 1;
    const bool is_in_a_step = tensor.use == PageUse::kRepeated;
    if (!is_gathered || !is_in_a_step || !t.stage.holds(tensor, t.tensors->num_blocks())) continue;
    traffic.all_gathers += t.passes;
    traffic.bytes +=
        t.pictures_passed * share_of_tensor(tensor, grid.of_tp(), t.tp_rank).rows * t.element_bytes;
  }
  return traffic;
}

// Tokens over all blocks of the stage.
std::int64_t seen_by_blocks(const EvaluationTerms& t, const TokenCounts& tokens) {
  std::int64_t sum = 0;
  for_each_kind(t.shape, t.stage,
                [&](const BlockCost& kind, std::int64_t count) { sum += count * tokens.of(kind); });
  return sum;
}

// Blocks of the stage that see any of the tokens.
std::int64_t blocks_of_stage(const EvaluationTerms& t, const TokenCounts& tokens) {
  std::int64_t sum = 0;
  for_each_kind(t.shape, t.stage, [&](const BlockCost& kind, std::int64_t count) {
    if (tokens.of(kind) > 0) sum += count;
  });
  return sum;
}

constexpr std::int64_t kSpanBytes = 2 * sizeof(std::int32_t);

// Attention of a prefix in every step, and behind it: parallel/ulysses.h.
Traffic ulysses_of_prefix(const StepShare& s, const EvaluationTerms& t) {
  const auto calls = t.passes * blocks_of_stage(t, s.own_tokens), tokens = s.own_tokens.prefix();
  const auto before =
      t.pictures_passed * s.kv_heads_sent * tokens * t.shape.head_width * t.element_bytes;
  return {.all_gathers = calls,
          .all_to_alls = 3 * calls,
          .bytes = blocks_of_stage(t, s.own_tokens) * (before + t.passes * tokens * kSpanBytes)};
}

Traffic ulysses(const Degrees& grid, const StepShare& s, const EvaluationTerms& t) {
  if (grid.ulysses == 1) return {};
  const auto there = s.heads_sent * seen_by_blocks(t, s.own_tokens);
  const auto back = s.attended_heads.q.count * seen_by_blocks(t, s.query_tokens);
  Traffic traffic{
      .all_to_alls = 2 * t.passes * blocks_of_stage(t, s.own_tokens),
      .bytes = t.pictures_passed * (there + back) * t.shape.head_width * t.element_bytes};
  if (t.has_prefix) add(traffic, ulysses_of_prefix(s, t));
  return traffic;
}

// A prefix in every step is gathered, in either form, with its spans.
Traffic ring_of_prefix(const StepShare& s, const EvaluationTerms& t, std::int64_t token_bytes) {
  const auto calls = t.passes * blocks_of_stage(t, s.own_tokens), tokens = s.query_tokens.prefix();
  return {
      .all_gathers = 2 * calls,
      .bytes = blocks_of_stage(t, s.own_tokens) * tokens * (token_bytes + t.passes * kSpanBytes)};
}

Traffic ring(RingForm form, const Degrees& grid, const StepShare& s, const EvaluationTerms& t) {
  if (grid.ring == 1) return {};
  const auto token_bytes =
      2 * t.pictures_passed * s.attended_heads.kept_kv() * t.shape.head_width * t.element_bytes;
  const auto bytes =
      seen_by_blocks(t, form == RingForm::kGather ? s.key_tokens : s.sent_keys) * token_bytes;
  const auto blocks = t.passes * blocks_of_stage(t, s.own_tokens);
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

EvaluationTerms terms_of(const PlanJob& job, const Degrees& grid, int rank, const Stage& stage,
                         const StepShare& s) {
  return {.passes = s.branches * items_of_batch(job, grid),
          .pictures_passed = s.branches * s.batch,
          .shape = job.shape(),
          .stage = stage,
          .tensors = &tensors_of_first_step(job),
          .element_bytes = job.element_bytes(),
          .tp_rank = place_of(grid, rank).tp,
          .has_prefix = job.shape().text == TextTokens::kPrefix && !job.keeps_prefix()};
}

// Traffic inside blocks; along tp: of all_reduces, and of all_gathers.
struct BlockTraffic {
  Traffic reduces, gathers, ulysses, ring;
};

void add_blocks(BlockTraffic& sum, const PlanJob& job, const Degrees& grid, const StepShare& s,
                const EvaluationTerms& t) {
  if (grid.tp > 1) {
    add(sum.reduces, reduces_of(s, t));
    add(sum.gathers, gathers_of(grid, t));
  }
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
    EvaluationTerms t{.passes = 1,
                      .pictures_passed = followed.count,
                      .shape = job.shape(),
                      .stage = {},
                      .tensors = &job.tensors->of(*nets[net]),
                      .element_bytes = job.element_bytes(),
                      .tp_rank = place_of(grid, rank).tp};
    t.shape.blocks = nets[net]->costs;
    t.stage = whole_transformer(t.shape);
    add_blocks(sum, job, grid, share_of_step(seen, grid, rank), t);
  }
}

// Every stage gets the residuals of all pictures, for both kinds of blocks.
Traffic residuals_of(const PlanJob& job, const Degrees& grid, int rank, const StepShare& s) {
  if (job.family->parts(Part::Role::kControl).empty()) return {};
  const auto mine = pictures_followed(job, grid, rank).count * s.own_tokens.image;
  return {.broadcasts = 2 * std::min(job.batch_size, grid.pp),
          .bytes = mine * job.shape().residuals * job.shape().hidden * job.element_bytes()};
}

}  // namespace

namespace {

StepTraffic step_traffic(const PlanJob& job, const Degrees& grid, int rank, const Stage& stage) {
  const auto& shape = job.shape();
  const auto s = share_of_step(job, grid, rank);
  const auto t = terms_of(job, grid, rank, stage, s);
  const auto velocities = [&](std::int64_t tokens) {
    return t.pictures_passed * tokens * shape.out_width * t.element_bytes;
  };
  Traffic context, cfg, stages;
  if (grid.ring * grid.ulysses > 1)
    context = {.all_gathers = s.branches, .bytes = velocities(s.own_tokens.image)};
  if (grid.cfg > 1) cfg = {.all_gathers = 1, .bytes = velocities(job.image_tokens())};
  if (grid.pp > 1) {
    stages = {.broadcasts = 1,
              .shifts = t.passes + grid.pp - 1,
              .bytes = stage.is_last
                           ? velocities(s.own_tokens.image)
                           : t.pictures_passed * (s.own_tokens.all() + shape.state_vectors) *
                                 shape.hidden * t.element_bytes};
    add(stages, residuals_of(job, grid, rank, s));
  }
  BlockTraffic blocks;
  add_blocks(blocks, job, grid, s, t);
  add_controlnets(blocks, job, grid, rank);
  return {.reduces = blocks.reduces,
          .gathers = blocks.gathers,
          .others = {{"ulysses", blocks.ulysses},
                     {"ring", blocks.ring},
                     {"context", context},
                     {"pp", stages},
                     {"cfg", cfg},
                     {"dp", {}},
                     {"replica", {}},
                     {"world", {}}}};
}

}  // namespace

TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank,
                              const Stage& stage) {
  auto [tp, gathers, by_axis] = step_traffic(job, grid, rank, stage);
  add(tp, gathers);
  by_axis.insert(by_axis.begin(), {"tp", tp});
  return by_axis;
}

StepTraffic traffic_by_kind(const PlanJob& job, const Degrees& grid, int rank) {
  return step_traffic(job, grid, rank, whole_transformer(job.shape()));
}

TrafficByAxis predict_traffic(const PlanJob& job, const Degrees& grid, int rank) {
  return predict_traffic(job, grid, rank, whole_transformer(job.shape()));
}

}  // namespace braid
