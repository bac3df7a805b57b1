// Fit::kAuto on a GPU that has no room for all weights.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/gpus.h"
#include "braid/braid.h"
#include "fake_gpu.h"
#include "made_topology.h"
#include "pipeline/deployment/deployment.h"

namespace braid::fit_test {

const Request kRequest{.prompts = {"a"}, .width = 64, .height = 64, .steps = 1};

// Drivers list a card with 10 MB left for a model whose weights are 17 MB in float32.
class SmallGpu : public testing::Test {
 protected:
  SmallGpu() {
    ::setenv("BRAID_KFD_TOPOLOGY", made_.path().c_str(), 1);
    made_.add(1, 110001, 1'010'000'000);
  }
  ~SmallGpu() override { ::unsetenv("BRAID_KFD_TOPOLOGY"); }
  void SetUp() override {
    if (find_gpus().size() != 1) GTEST_SKIP() << "this machine's own GPUs come first";
  }

  MadeTopology made_;
};

// Offloaded weights are locked on the host: that is how a pipeline shows that it offloads.
TEST_F(SmallGpu, HasWeightsOffloadedByAPipelineThatFitsItself) {
  PipelineOptions options{.model = BRAID_SOURCE_DIR "/models/demo", .device = "cuda"};
  const auto before = fake_gpu::num_locked_bytes();
  const Pipeline whole(options);
  EXPECT_EQ(fake_gpu::num_locked_bytes(), before);
  options.memory.fit = Fit::kAuto;
  const Pipeline fitted(options);
  EXPECT_GT(fake_gpu::num_locked_bytes(), before);
  EXPECT_EQ(fitted.generate(kRequest).front().rgb, whole.generate(kRequest).front().rgb);
  const auto deployment = deploy(options);  // as `braid generate` asks for it
  EXPECT_NE(deployment.options.memory.offload.transformer, OffloadMode::kNone);
  EXPECT_TRUE(deployment.is_budget_implied);
}

}  // namespace braid::fit_test
