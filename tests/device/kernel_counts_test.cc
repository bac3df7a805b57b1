// What a block starts and moves on a GPU, as the planner's model of time has it: BlockCost is in
// every family's shape.cc. The kernels are counted as a step runs, with cuDNN's attention.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "fake_gpu.h"
#include "kernel_counter.h"
#include "on_gpus.h"
#include "parallel/ulysses.h"
#include "pipeline/devices/devices.h"
#include "pipeline/proofs/probe.h"

namespace braid::kernel_counts_test {

using fake_gpu::CountsKernels;

const std::filesystem::path kDemo = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";
const std::filesystem::path kParity = std::filesystem::path(BRAID_SOURCE_DIR) / "tests/data/parity";

constexpr int kTextTokens = 16;

// What was started between two places that a watch tells of.
struct Block {
  std::int64_t kernels = 0, bytes = 0;
  std::string names = {};  // for a failure's message
};

struct Step {
  std::shared_ptr<const Family> family;
  std::int64_t image_tokens, text_tokens, element_bytes;
  std::map<std::string, Block> blocks;  // by the name of their place: "double_blocks.1"
};

class KernelsOfABlock : public OnGpu {
 protected:
  Step step_of(const std::filesystem::path& model, const Memory& memory = {},
               std::int64_t batch = 1) const {
    return step_of(model, Mesh(), find_device("cuda:0"), memory, batch);
  }
  // Measures the step that this rank evaluates.
  static Step step_of(const std::filesystem::path& model, const Mesh& mesh, at::Device device,
                      const Memory& memory = {}, std::int64_t batch = 1);
  // The last of a kind: what precedes a first one may belong to the embedders.
  static void expect_costs(const Step& step, const BlockCost& kind, const std::string& place,
                           std::int64_t more_kernels = 0, std::int64_t more_bytes = 0) {
    ASSERT_TRUE(step.blocks.contains(place)) << place;
    const auto& block = step.blocks.at(place);
    const auto tokens =
        kind.scope == TokenScope::kImage ? step.image_tokens : step.image_tokens + step.text_tokens;
    EXPECT_EQ(block.kernels, kind.kernels + more_kernels) << place << block.names;
    const auto own = std::int64_t(kind.traffic_elements.of_heads(1, 1));
    EXPECT_EQ(block.bytes, own * tokens * step.element_bytes + more_bytes) << place << block.names;
  }
};

Step KernelsOfABlock::step_of(const std::filesystem::path& model, const Mesh& mesh,
                              at::Device device, const Memory& memory, std::int64_t batch) {
  const c10::InferenceMode no_autograd;
  const fake_gpu::Attends cudnn(ops::AttentionKernel::kCudnn,
                                fake_gpu::Attends::Heads::kOfAnyWidth);
  auto deployment = deploy({.model = model, .dtype = Dtype::kBfloat16, .memory = memory});
  deployment.devices.assign(std::size_t(num_gpus()), device);  // whichever rank this is
  const auto probe =
      probe_of({.width = 64, .height = 64, .max_sequence_length = kTextTokens}, deployment);
  const auto denoisers = denoisers_of(mesh, deployment);
  std::vector<DenoiserInput> branches = {inputs_of(probe, 3, device)};
  modulate_controls(branches, denoisers->controls());
  const OncePerPicture once(
      *denoisers, {branches},
      probe.family->keeps_prefix(ReferenceCache::kAuto) ? Prefix::kKept : Prefix::kInEveryStep);
  branches = once.completed(branches);
  auto& in = branches.front();
  if (batch > 1)
    visit_tensors(in, [&](Tensor& x, const DimRoles& dims) {
      if (dims.batch == DimRoles::kNone) return;
      std::vector<std::int64_t> times(std::size_t(x.dim()), 1);
      times[std::size_t(dims.batch)] = batch;
      x = x.repeat(times);
    });
  Step step{.family = probe.family,
            .image_tokens = batch * probe.family->shape().padded(in.noise.x_BLC.size(1)),
            .text_tokens = batch * probe.family->shape().padded(in.text.x_BLC.size(1)),
            .element_bytes = 2,
            .blocks = {}};
  const CountsKernels counts;
  std::size_t seen = 0;
  in.watch = [&](const std::string& where, const Tensor&) {
    Block block;
    for (; seen < counts.count(); ++seen) {
      const auto& [name, bytes] = counts.kernels()[seen];
      ++block.kernels;
      block.bytes += bytes;
      block.names += "\n  " + name + " " + std::to_string(bytes);
    }
    step.blocks.emplace(where.substr(0, where.find(' ')), block);  // the first of a place
  };
  (void)denoisers->predict(branches);
  return step;
}

const BlockCost& kind_named(const Step& step, const std::string& name) {
  const auto& kinds = step.family->shape().blocks;
  return *std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.name == name; });
}

// These are made once per picture, by the only powers: a step joins them.
TEST_F(KernelsOfABlock, MakeNoRotaryTables) {
  for (const auto* const model : {"klein", "joy", "krea2", "qwen21"}) {
    const auto step = step_of(kParity / model / "model");
    EXPECT_FALSE(step.blocks.empty()) << model;
    for (const auto& [place, block] : step.blocks)
      EXPECT_EQ(block.names.find("pow"), std::string::npos) << model << place << block.names;
  }
}

TEST_F(KernelsOfABlock, OfFlux1Are16And8) {
  const auto step = step_of(kDemo);
  EXPECT_EQ(kind_named(step, "double").kernels, 16);
  EXPECT_EQ(kind_named(step, "single").kernels, 8);
  expect_costs(step, kind_named(step, "double"), "double_blocks.1");
  expect_costs(step, kind_named(step, "single"), "single_blocks.5");
}

TEST_F(KernelsOfABlock, OfFlux2AreWhatThePlannerCounts) {
  const auto step = step_of(kParity / "klein/model");
  expect_costs(step, kind_named(step, "double"), "double_blocks.1");
  expect_costs(step, kind_named(step, "single"), "single_blocks.1");
}

TEST_F(KernelsOfABlock, OfJoyAreWhatThePlannerCounts) {
  const auto step = step_of(kParity / "joy/model");
  expect_costs(step, kind_named(step, "double"), "double_blocks.1");
}

TEST_F(KernelsOfABlock, OfKrea2AreWhatThePlannerCounts) {
  const auto step = step_of(kParity / "krea2/model");
  expect_costs(step, kind_named(step, "blocks"), "transformer_blocks.1");
}

// The prefix brings only keys and values to a step, which are copied beside those of its tokens.
TEST_F(KernelsOfABlock, OfQwenImage21AreWhatThePlannerCounts) {
  const auto step = step_of(kParity / "qwen21/model");
  EXPECT_EQ(step.text_tokens, 0);
  const auto kept = 2 * kTextTokens * step.family->shape().hidden;
  expect_costs(step, kind_named(step, "blocks"), "transformer_blocks.1", /*more_kernels=*/0,
               2 * kept * step.element_bytes);
}

TEST_F(KernelsOfABlock, OfZImageAreWhatThePlannerCounts) {
  const auto step = step_of(kParity / "zimage-turbo/model");
  expect_costs(step, kind_named(step, "blocks"), "layers.1");
}

// Only what attention returns is quantized by a kernel of its own, the rest by the kernel that
// makes it; GELU of a double block is such a kernel.
TEST_F(KernelsOfABlock, OfFloat8WriteCodesInPassing) {
  const auto step = step_of(kDemo, {.quantize = Quantize::kFloat8});
  const auto tokens = double(step.image_tokens + step.text_tokens);
  const auto expect = [&](const char* name, const char* place) {
    const auto& kind = kind_named(step, name);
    const auto& block = step.blocks.at(place);
    const auto quantizing = kind.layers - kind.coded_layers;
    EXPECT_EQ(block.kernels, kind.kernels + quantizing + kind.activating_kernels) << block.names;
    const auto all = [](const Widths& widths) { return widths.of_heads(1, 1); };
    // quantize_rows() reports no bytes
    const double bytes =
        all(kind.traffic_elements) * 2 + all(kind.activated) * 2 - all(kind.coded) * 1;
    EXPECT_EQ(double(block.bytes), bytes * tokens) << block.names;
  };
  expect("double", "double_blocks.1");
  expect("single", "single_blocks.5");
}

// Each side's part of the attended tokens is copied once, and values are joined; the biases still
// come with the products.
TEST_F(KernelsOfABlock, OfSeveralPicturesCopyTheirAttendedTokensOnce) {
  const auto step = step_of(kDemo, {}, 2);
  const auto& block = step.blocks.at("double_blocks.1");
  EXPECT_EQ(block.kernels, kind_named(step, "double").kernels + 3) << block.names;
}

// A sum of tensor parallel ranks is one kernel, which takes the gated residual's place; here each
// rank's share is one side. What NCCL starts is not counted.
TEST_F(KernelsOfABlock, OfTensorParallelRanksSumOnce) {
  constexpr int kRanks = 2;
  std::vector<Step> steps(kRanks);
  run_on_gpus(kRanks, [&](const World&, const Group& world, int gpu) {
    const at::Device device(at::kCUDA, at::DeviceIndex(gpu));
    const c10::DeviceGuard on(device);
    steps[std::size_t(world.rank())] = step_of(kDemo, make_mesh(world, {.tp = kRanks}), device);
  });
  for (const auto& step : steps)
    for (const auto& [name, place] :
         {std::pair("double", "double_blocks.1"), std::pair("single", "single_blocks.5")}) {
      const auto& kind = kind_named(step, name);
      const auto& block = step.blocks.at(place);
      const auto started = kind.kernels + kind.all_reduces - kind.gated_kernels;
      EXPECT_EQ(block.kernels, started) << block.names;
      // the parts of both ranks are read, and the residual's share; half of the sum is written
      const double sums = kind.all_reduces * (kRanks + 1) + kind.gated_sums;
      const double widths = (sums / kRanks * double(step.family->shape().hidden) +
                             kind.traffic_elements.of_heads(1, kRanks) - kind.gated_elements);
      const auto tokens = double(step.image_tokens + step.text_tokens);
      EXPECT_EQ(double(block.bytes), widths * tokens * 2) << block.names;
    }
}

// q, k and v are copied once, the result once, and of both this rank's own part again, for any
// number of ranks: 8 widths of a token and 8 more over the ranks.
TEST_F(KernelsOfABlock, OfUlyssesAreFourForAnyNumberOfRanks) {
  constexpr std::int64_t kTokens = 10, kHeads = 8, kWidth = 16;
  for (const int ranks : {2, 4})
    run_on_gpus(ranks, [&](const World&, const Group& world, int gpu) {
      const at::Device device(at::kCUDA, at::DeviceIndex(gpu));
      const c10::DeviceGuard on(device);
      const fake_gpu::Attends cudnn(ops::AttentionKernel::kCudnn);
      const auto qkv =
          at::randn({1, kTokens, 3 * kHeads * kWidth}).to(at::kBFloat16).to(device).chunk(3, -1);
      const auto heads = [&](const Tensor& x) { return split_heads(x, kWidth); };
      const auto attend = ulysses(world, ops::attention);
      const CountsKernels counts;
      (void)attend_tokens(attend, heads(qkv[0]), heads(qkv[1]), heads(qkv[2]));
      std::vector<std::string> names;
      std::int64_t bytes = 0;
      for (const auto& kernel : counts.kernels()) {
        names.push_back(kernel.name);
        bytes += kernel.bytes;
      }
      EXPECT_EQ(names, (std::vector<std::string>{"aten::cat", "aten::copy_",
                                                 "aten::_scaled_dot_product_cudnn_attention",
                                                 "aten::copy_", "aten::cat"}))
          << ranks;
      EXPECT_EQ(bytes, 8 * kTokens * kHeads * kWidth * 2) << ranks << ", without the two copies";
    });
}

}  // namespace braid::kernel_counts_test
