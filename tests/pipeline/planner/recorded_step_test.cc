// The memory of a recorded step, which stays while a picture is decoded: what is planned against an
// allocator that keeps a graph's memory as LibTorch's does.
#include <gtest/gtest.h>

#include "pipeline/planner/memory_plan.h"
#include "pipeline/planner/planned.h"

namespace braid::recorded_step_test {

// Memory in use and its peak; what is allocated while a graph records is the graph's until that is
// gone.
class Allocator {
 public:
  void allocate(std::int64_t bytes) {
    in_use_ += bytes;
    peak_ = std::max(peak_, in_use_);
    if (is_recording_) of_graph_ += bytes;
  }
  void free(std::int64_t bytes) {
    if (!is_recording_) in_use_ -= bytes;
  }
  void begin_recording() { is_recording_ = true; }
  void end_recording() { is_recording_ = false; }
  void destroy_graph() { in_use_ -= std::exchange(of_graph_, 0); }
  void hold_for_a_while(std::int64_t bytes) {
    allocate(bytes);
    free(bytes);
  }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t in_use_ = 0, peak_ = 0, of_graph_ = 0;
  bool is_recording_ = false;
};

// Two pictures one after another, as a server draws them.
std::int64_t peak_of_run(const RankBytes& bytes, bool records, bool drops) {
  Allocator gpu;
  gpu.allocate(bytes.weights() + bytes.link);
  const auto works_in = bytes.activations + bytes.keys_values + bytes.staging;
  bool has_graph = false;
  for (int picture = 0; picture < 2; ++picture) {
    gpu.hold_for_a_while(bytes.encoding);
    gpu.allocate(bytes.modulations + bytes.ropes + bytes.kept + bytes.widened);
    if (!has_graph) gpu.hold_for_a_while(works_in);  // the first evaluation is not recorded
    if (!has_graph && records) {
      gpu.begin_recording();
      gpu.hold_for_a_while(works_in);
      gpu.end_recording();
      has_graph = true;
    }
    gpu.free(bytes.modulations + bytes.ropes + bytes.kept + bytes.widened);
    if (drops) gpu.destroy_graph();
    has_graph = has_graph && !drops;
    gpu.hold_for_a_while(bytes.decoding);
  }
  return gpu.peak();
}

PlanJob job_at(int side) {
  auto job = flux_dev();
  job.width = job.height = side;
  job.tiling = VaeTiling::kOff;
  return job;
}

TEST(RecordedStep, KeepsItsMemoryWhileAPictureIsDecoded) {
  for (const int side : {512, 1024, 2048}) {
    const auto job = job_at(side);
    for (const auto& grid : {Degrees{}, Degrees{.tp = 2}, Degrees{.ring = 2}}) {
      const auto bytes = predict_bytes(job, grid, 0, whole_transformer(job.shape()));
      EXPECT_GT(bytes.recorded, 0);
      EXPECT_EQ(bytes.peak(), peak_of_run(bytes, /*records=*/true, /*drops=*/false))
          << side << " " << layout_name(grid);
    }
  }
}

TEST(RecordedStep, IsOfFluxAt1024AndAt2048AsLargeAsItsValues) {
  const auto recorded = [](int side) {
    return double(
        predict_bytes(job_at(side), {}, 0, whole_transformer(flux_dev().shape())).recorded);
  };
  EXPECT_NEAR(recorded(1024), 0.5e9, 0.1e9);  // 15 widths of the block and 2 of keys and values
  EXPECT_NEAR(recorded(2048) / recorded(1024), 16896.0 / 4608, 1e-6);
}

TEST(RecordedStep, TakesNothingWhereItIsDroppedOrCannotBe) {
  const auto whole = whole_transformer(flux_dev().shape());
  auto job = job_at(2048);
  const auto kept = predict_bytes(job, {}, 0, whole);
  job.memory.recorded_step = RecordedStep::kDropped;
  const auto dropped = predict_bytes(job, {}, 0, whole);
  EXPECT_EQ(dropped.recorded, 0);
  EXPECT_LT(dropped.peak(), kept.peak());
  EXPECT_EQ(dropped.peak(), peak_of_run(kept, /*records=*/true, /*drops=*/true));

  job = job_at(2048);
  job.graphs = Graphs::kOff;
  EXPECT_EQ(predict_bytes(job, {}, 0, whole).recorded, 0);
  job = job_at(2048);
  job.memory.offload.transformer = OffloadMode::kBlock;
  EXPECT_EQ(predict_bytes(job, {}, 0, whole).recorded, 0);
  job = job_at(2048);
  job.is_on_host = true;
  EXPECT_EQ(predict_bytes(job, {}, 0, whole).recorded, 0);
}

MemoryPlan fit_in(std::int64_t bytes) {
  auto job = job_at(2048);
  job.memory.budget.device = bytes;
  return plan_memory(job, {.grid = {}, .devices = {"cuda:0"}});
}

// A step recorded once more costs less than weights that come and go.
TEST(RecordedStep, IsDroppedBeforeWeightsAreOffloaded) {
  const auto whole = whole_transformer(flux_dev().shape());
  auto job = job_at(2048);
  const auto kept = predict_bytes(job, {}, 0, whole).peak();
  job.memory.recorded_step = RecordedStep::kDropped;
  const auto dropped = predict_bytes(job, {}, 0, whole).peak();

  const auto roomy = fit_in(kept), tight = fit_in(kept - 1), small = fit_in(dropped - 1);
  EXPECT_EQ(roomy.memory.recorded_step, RecordedStep::kKept);
  EXPECT_EQ(tight.memory.recorded_step, RecordedStep::kDropped);
  EXPECT_EQ(tight.memory.offload.transformer, OffloadMode::kNone);
  EXPECT_EQ(tight.memory.offload.text, OffloadMode::kNone);
  EXPECT_EQ(tight.device_peak, dropped);
  EXPECT_NE(small.copy_seconds, 0);
}

// What a plan says fits is what a run makes fit.
TEST(RecordedStep, RulesOutNoLayoutThatFitsWithoutIt) {
  auto job = job_at(2048);
  const auto kept = predict_bytes(job, {}, 0, whole_transformer(job.shape())).peak();
  auto machine = braid::machine_of("h100");
  machine.devices.front().memory = double(kept - 1) / 0.95;
  const auto layout = plan_layout(job, machine, {});
  EXPECT_TRUE(layout.fits()) << layout.reason;
  EXPECT_LT(layout.first_rank.peak(), kept);
}

// Nothing counted these: each of several GPUs has them beside its weights.
TEST(RankBytes, HaveWhatLinksGpus) {
  auto job = job_at(1024);
  const auto link = [&](const Degrees& grid) {
    return double(predict_bytes(job, grid, 0, whole_transformer(job.shape())).link) / 1e9;
  };
  EXPECT_EQ(link({}), 0);
  EXPECT_NEAR(link({.tp = 2}), 0.3, 1e-9);
  EXPECT_NEAR(link({.ulysses = 8}), 0.9, 1e-9);
  EXPECT_NEAR(link({.dp = 8, .tp = 8}), 1.0, 1e-9);
  auto host = job;
  job.layout.collectives = Collectives::kNative;
  EXPECT_NEAR(link({.tp = 2}), 0.3, 1e-9);
  EXPECT_NEAR(link({.ulysses = 8}), 0.9, 1e-9);
  EXPECT_NEAR(link({.ring = 2, .tp = 4}), 0.9 + 0.3, 1e-9) << "a tensor parallel group's own";
  host.is_on_host = true;
  EXPECT_EQ(predict_bytes(host, {.tp = 2}, 0, whole_transformer(job.shape())).link, 0);
}

}  // namespace braid::recorded_step_test
