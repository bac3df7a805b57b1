// Freed GPU memory: what LibTorch's allocator keeps of it is free for this process, and is given
// back when a model ends.
#include "pipeline/devices/cached_memory.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "braid/braid.h"
#include "braid/picture_autoencoder.h"
#include "braid/transformer.h"
#include "on_gpu.h"
#include "pipeline/devices/devices.h"
#include "pipeline/devices/host.h"

namespace braid::cached_memory_test {

class CachedMemory : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (!IsSkipped()) give_back_cached_memory(find_device("cuda"));
  }
};

TEST_F(CachedMemory, IsFreeForThisProcess) {
  constexpr std::int64_t kBytes = 64 << 20, kElsewhere = 8 << 20;  // by other programs, meanwhile
  const auto free = [] { return free_memory(gpu(), 1).free_bytes; };
  const auto before = free(), cached = cached_bytes(gpu());
  std::optional x = at::empty({kBytes}, at::TensorOptions(at::kByte).device(gpu()));
  EXPECT_NEAR(double(free()), double(before - kBytes), kElsewhere);
  x.reset();
  EXPECT_EQ(cached_bytes(gpu()) - cached, kBytes);
  EXPECT_NEAR(double(free()), double(before), kElsewhere);
  EXPECT_NEAR(this_host().spec(gpu()).memory, double(before), kElsewhere);
  EXPECT_NEAR(double(*free_gpu_bytes("cuda")), double(before), kElsewhere);
  give_back_cached_memory(gpu());
  EXPECT_EQ(cached_bytes(gpu()), cached);
  EXPECT_EQ(cached_bytes(at::kCPU), 0);
}

using SlowCachedMemory = CachedMemory;

TEST_F(SlowCachedMemory, IsGivenBackWhenAModelEnds) {
  const PipelineOptions options{.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo",
                                .device = "cuda"};
  constexpr std::int64_t kAmidUsed = 4 << 20;  // between what libraries still use
  const auto most = cached_bytes(gpu()) + kAmidUsed;
  (void)Pipeline(options).generate({.prompts = {"a"}, .width = 64, .height = 64, .steps = 1});
  EXPECT_LE(cached_bytes(gpu()), most) << "a pipeline";
  { const Transformer transformer(options); }
  EXPECT_LE(cached_bytes(gpu()), most) << "a transformer";
  {
    const PictureAutoencoder autoencoder(options);
    constexpr std::int64_t kSide = 512;  // 16 channels of it are more than the slack
    (void)autoencoder.encode(
        {.shape = {1, 3, kSide, kSide}, .values = std::vector<float>(3 * kSide * kSide)});
    EXPECT_GT(cached_bytes(gpu()), most) << "there is something to give back";
  }
  EXPECT_LE(cached_bytes(gpu()), most) << "an autoencoder";
}

}  // namespace braid::cached_memory_test
