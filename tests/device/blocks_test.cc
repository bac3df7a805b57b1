// Weights in a file's blocks on a GPU: products, and a model that keeps them so.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gmock/gmock.h>

#include "on_gpu.h"
#include "ops/ops.h"
#include "ops/panels.h"
#include "ops/random_blocks.h"
#include "ops/reference.h"
#include "pipeline/engine/engine.h"
#include "pipeline/files/found_files.h"
#include "pipeline/files/part_tensors.h"
#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/costs/memory.h"
#include "weights/codes/int8.h"

namespace braid::blocks_test {

namespace fs = std::filesystem;

const fs::path kParity = fs::path(BRAID_SOURCE_DIR) / "tests/data/parity";
constexpr ElementType kKept[] = {
    ElementType::kFloat8E4M3, ElementType::kFloat8E5M2, ElementType::kQ8_0, ElementType::kQ4_0,
    ElementType::kQ4_K,       ElementType::kQ5_K,       ElementType::kQ6_K};

class BlocksOnGpu : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    auto numbers = at::detail::getDefaultCPUGenerator();
    numbers.set_current_seed(11);
  }
  static Matrix there(const Matrix& matrix) { return on_device(matrix, gpu()); }
};

double error_of(const Tensor& got, const Tensor& want) {
  const auto exact = want.to(at::kDouble);
  return ((got.cpu().to(at::kDouble) - exact).abs().max() / exact.abs().max()).item<double>();
}

// Sums are in another order, and those of 16 bits rounded.
void expect_product(const Matrix& weight, at::ScalarType dtype, std::int64_t tokens) {
  const at::Device gpu(at::kCUDA, 0);
  const auto x = at::randn({2, tokens, weight.inputs()}).to(dtype);
  const auto bias = at::randn({weight.values_NC.size(0)}).to(dtype);
  Scratch scratch;
  for (const bool has_bias : {true, false}) {
    const auto b = has_bias ? std::optional(bias) : std::nullopt;
    const auto b_there = has_bias ? std::optional(bias.to(gpu)) : std::nullopt;
    const auto want = ops::reference::linear(x, weight, b);
    const auto got = ops::linear(x.to(gpu), on_device(weight, gpu), b_there, scratch);
    ASSERT_EQ(got.sizes(), want.sizes());
    ASSERT_EQ(got.scalar_type(), dtype);
    EXPECT_LE(error_of(got, want), dtype == at::kFloat ? 1e-5 : 1.0 / 64)
        << element_type_name(weight.coding->type) << " " << dtype << " " << tokens;
  }
}

TEST_F(BlocksOnGpu, MultiplyAsTheirNumbersDo) {
  for (const auto type : kKept)
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
      for (const std::int64_t tokens : {1, 3, 40}) {
        expect_product(coded(type, 70, 512), dtype, tokens);
        expect_product(wanting(coded(type, 33, 1024), {{0, 256}, {300, 500}}), dtype, tokens);
      }
}

using SlowBlocksOnGpu = BlocksOnGpu;

// Several panels, the last one shorter.
TEST_F(SlowBlocksOnGpu, MultiplyByPanels) {
  constexpr std::int64_t kInputs = 8192, kRows = 2048 + 70;
  static_assert(ops::rows_per_panel(kRows, kInputs * 2) == 2048);
  expect_product(coded(ElementType::kQ4_K, kRows, kInputs), at::kBFloat16, 3);
}

std::int64_t peak_bytes() {
  constexpr auto kAll = std::size_t(c10::CachingAllocator::StatType::AGGREGATE);
  return c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(0).allocated_bytes[kAll].peak;
}

TEST_F(SlowBlocksOnGpu, HoldNoMoreThanAPanelBesidesThem) {
  constexpr std::int64_t kInputs = 8192, kRows = 3 * 2048, kSlack = 1 << 20;
  const auto weight = there(coded(ElementType::kQ8_0, kRows, kInputs));
  const auto x = at::randn({1, kInputs}).to(at::kBFloat16).to(gpu());
  auto* const allocator = c10::getDeviceAllocator(at::kCUDA);
  allocator->resetPeakStats(0);
  const auto before = peak_bytes();
  Scratch scratch;
  (void)ops::linear(x, weight, std::nullopt, scratch);
  EXPECT_GE(peak_bytes() - before, ops::kPanelBytes);
  EXPECT_LE(peak_bytes() - before, ops::kPanelBytes + kSlack);
}

Recording run(const PipelineOptions& options) {
  const Engine engine(options, {});
  return engine
      .generate({.prompts = {"a red circle on a blue background"},
                 .width = 64,
                 .height = 48,
                 .steps = 2,
                 .max_sequence_length = 16},
                {}, {.record = RecordTensors::kYes})
      .facts.recording;
}

PipelineOptions in_blocks(const std::string& device) {
  return {.model = kParity / "blocks/flux.gguf",
          .components = kParity / "basic/model",
          .dtype = Dtype::kFloat32,
          .devices = {device}};
}

TEST_F(BlocksOnGpu, OfATransformerComputeWhatACpuComputes) {
  const auto want = run(in_blocks("cpu"));
  const auto expect_close = [&](const PipelineOptions& options, const std::string& what) {
    const auto got = run(options);
    for (const auto* const name : {"velocity_first", "latents_final"})
      EXPECT_LT(error_of(got.at(name), want.at(name)), 1e-4) << what << ": " << name;
  };
  expect_close(in_blocks("cuda:0"), "alone");
  auto options = in_blocks("cuda:0");
  options.layout.tp = 2;
  options.devices = {"cuda:0", "cuda:0"};
  expect_close(options, "shared");
  for (const auto mode : {OffloadMode::kModel, OffloadMode::kBlock, OffloadMode::kSequential}) {
    options = in_blocks("cuda:0");
    options.memory.offload.transformer = mode;
    expect_close(options, "paged");
  }
}

// Loaded as the files have them, so a plan's bytes are those of the blocks.
TEST_F(BlocksOnGpu, AreCountedByPlans) {
  const auto options = in_blocks("cuda:0");
  const auto job = job_of(deploy(options), {});
  const auto files = find_model(options).files;
  const auto family = open_family(files);
  const auto& part = family->part(Part::Role::kDenoiser);
  std::vector<SurveyedTensor> asked;
  part.make(Weights(tensors_of_part(part, files), {}).surveyed(asked));
  const Weights w(tensors_of_part(part, files),
                  {.dtype = at::kFloat, .device = gpu(), .stored_codes = StoredCodes::kKept});
  std::int64_t bytes = 0, in_blocks = 0;
  for (const auto& a : asked) {
    if (!a.is_matrix()) {
      bytes += std::int64_t((w / a.layer).tensor(a.name, a.shape).nbytes());
      continue;
    }
    const auto matrix = (w / a.layer).matrix(a.name, a.shape);
    EXPECT_TRUE(matrix.values_NC.is_cuda());
    for_each_tensor(matrix, [&](const Tensor& x) { bytes += std::int64_t(x.nbytes()); });
    if (matrix.coding) ++in_blocks;
  }
  w.finish();
  EXPECT_GT(in_blocks, 0);
  EXPECT_EQ(predict_transformer_bytes(job, {}, 0, whole_transformer(job.shape())).transformer,
            bytes);
}

// FLUX.1's linear1, in Q4_K.
TEST(PlannedBlocks, AreWidenedByPanelsOnAGpu) {
  constexpr std::int64_t kRows = 21504, kInputs = 3072;
  const PartTensors part{
      .tensors = {{.layer = "linear1",
                   .rows = kRows,
                   .columns = kInputs,
                   .dtype = at::kBFloat16,
                   .kind = PlannedTensor::Kind::kDense,
                   .kept = {{.dtype = at::kByte, .cell = {.columns = 256, .elements = 144}}},
                   .shared = PlannedTensor::Shared::kNot,
                   .block = -1,
                   .leaf = 0,
                   .use = PageUse::kRepeated}},
      .lists = {}};
  const auto pages = pages_of(part, {}, {});
  EXPECT_EQ(pages.outside, kRows * kInputs / 256 * 144);
  EXPECT_EQ(pages.decoded, kRows * kInputs * 2);
  EXPECT_EQ(pages.panel, 5376 / 256 * 256 * kInputs * 2);
  EXPECT_LE(pages.panel, ops::kPanelBytes);
  EXPECT_EQ(pages.widened, 0);
}

}  // namespace braid::blocks_test
