// LibTorch makes its list of attention kernels when it first chooses one, without a lock.
#include <gtest/gtest.h>

#include "fake_gpu.h"
#include "on_gpu.h"
#include "pipeline/engine/engine.h"

namespace braid::fake_choice_test {

TEST(ChoiceOfAttention, IsMadeBeforeRanksStart) {
  (void)fake_gpu::attention_choices();
  const Engine engine({.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo",
                       .devices = {"cuda:0", "cuda:1"},
                       .layout = {.tp = 2}},
                      {});
  const auto choices = fake_gpu::attention_choices();
  ASSERT_GE(choices.size(), 2u);
  EXPECT_EQ(choices[0], std::this_thread::get_id());
  EXPECT_EQ(choices[1], std::this_thread::get_id());
}

}  // namespace braid::fake_choice_test
