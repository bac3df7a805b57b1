// Forecasts equal dry runs: of FLUX.1 at its published widths, in every layout of one, two and four
// ranks, with resident weights.
#include "pipeline/dry/dry_run.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/planner.h"
#include "pipeline/planner/traffic_text.h"

namespace braid::dry_run_test {

// A published model with few blocks. Other numbers of blocks add nothing new.
struct Subject {
  const char* name;
  std::vector<int> blocks;
};
std::ostream& operator<<(std::ostream& out, const Subject& s) { return out << s.name; }

const Subject kSubjects[] = {{"flux1-dev", {2, 3}},    {"flux1-schnell", {2, 2}},
                             {"klein-4b", {2, 2}},     {"klein-9b-kv", {1, 3}},
                             {"flux2-dev", {2, 2}},    {"flux3-klein", {2, 2, 2, 3}},
                             {"flux3-klein-base", {1, 1, 1, 2}},
                             {"z-image", {1, 1, 3}},   {"joyai-image-edit", {4}},
                             {"qwen-image-2.1", {4}},  {"krea-2-raw", {4}}};

struct Way {
  const char* name;
  Memory memory;
};

Offload in(OffloadMode mode) { return {.transformer = mode, .text = mode, .vae = mode}; }

const Way kWays[] = {{"resident", {}},
                     {"int8", {.quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8}},
                     {"fp8", {.quantize = Quantize::kFloat8}},
                     {"model", {.offload = in(OffloadMode::kModel)}},
                     {"block", {.offload = in(OffloadMode::kBlock)}},
                     {"leaf", {.offload = in(OffloadMode::kLeaf)}}};

PlanJob job_of(const Subject& subject) {
  auto job = job_of_family(named_family(subject.name)->with_blocks(subject.blocks));
  job.width = 448;
  job.height = 320;
  job.text_tokens = 61;
  job.steps = 3;
  job.batch_size = job.num_pictures = 8;  // enough for any data parallelism
  return job;
}

Stage stage_of_rank(const PlanJob& job, const Degrees& grid, int rank) {
  const auto layer = place_of(grid, rank).pp;
  return stage_of(job.shape(), share_of(job.shape().num_blocks(), layer, grid.pp));
}

// Copied in a step: all that has no slot of its own, in each evaluation.
std::int64_t copied_in_step(const PlanJob& job, const Degrees& grid, int rank) {
  const auto& o = job.memory.offload;
  if (o.transformer == OffloadMode::kModel) return 0;  // it stays while only it runs
  const auto stage = stage_of_rank(job, grid, rank);
  const auto pages = pages_of(job.tensors->of(Part::Role::kDenoiser),
                              {.tp = grid.tp,
                               .tp_rank = place_of(grid, rank).tp,
                               .begin = stage.first_block,
                               .count = stage.num_blocks},
                              {job.memory.quantize, o.transformer, o.blocks});
  const auto evaluations = job.branches / grid.cfg * items_of_batch(job, grid);
  return evaluations * copied_bytes(pages, o, PageUse::kRepeated);
}

void expect_as_planned(const PlanJob& job, const Degrees& grid) {
  const auto ranks = dry_run(job, grid);
  for (int r = 0; r < grid.product(); ++r) {
    const auto& dry = ranks[std::size_t(r)];
    const auto stage = stage_of_rank(job, grid, r);
    const auto bytes = predict_bytes(job, grid, r, stage);
    const testing::ScopedTrace rank(__FILE__, __LINE__, text_of("rank ", r));
    EXPECT_EQ(text_of_traffic(dry.traffic), text_of_traffic(predict_traffic(job, grid, r, stage)));
    EXPECT_EQ(dry.weights, bytes.weights());
    EXPECT_EQ(dry.pages, bytes.pages);
    EXPECT_EQ(dry.slots, bytes.slots + bytes.shared_slot);
    EXPECT_EQ(dry.placed, bytes.resident_pages);
    EXPECT_EQ(dry.modulations, bytes.modulations);
    EXPECT_EQ(dry.kept, bytes.kept);
    EXPECT_EQ(dry.copied, copied_in_step(job, grid, r));
  }
}

class DryRun : public testing::TestWithParam<Subject> {};

TEST_P(DryRun, EqualsForecasts) {
  int runs = 0;
  for (const auto& [name, memory] : kWays)
    for (const int size : {1, 2, 4})
      for (const auto& grid : grids_of(size)) {
        auto job = job_of(GetParam());
        job.memory = memory;
        if (grid.cfg > 1) job.branches = 2;
        job = surveyed(std::move(job));
        if (refused_layout(job, grid)) continue;
        const testing::ScopedTrace way(
            __FILE__, __LINE__, text_of(GetParam().name, ", ", name, ", ", layout_name(grid)));
        expect_as_planned(job, grid);
        ++runs;
      }
  EXPECT_GE(runs, 2 * 12);
}

std::string name_of_subject(const testing::TestParamInfo<Subject>& info) {
  std::string name = info.param.name;
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Families, DryRun, testing::ValuesIn(kSubjects), name_of_subject);

}  // namespace braid::dry_run_test
