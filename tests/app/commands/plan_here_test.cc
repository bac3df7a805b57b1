// What `braid info` says of a model and free memory.
#include "app/commands/plan_here.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "pipeline/deployment.h"

namespace braid::plan_here_test {

using testing::HasSubstr;
using testing::StartsWith;

PipelineOptions demo() {
  PipelineOptions options{.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo"};
  options.memory.offload = {.transformer = OffloadMode::kLeaf, .prefetch = 0};
  return options;
}

TEST(FitHere, CountsOnTheFilesThatGenerateMakes) {
  const auto deployment = deploy(demo());
  Budget budget{.device = 2'000'000'000};
  EXPECT_THAT(plan_here(deployment, budget).sentence,
              HasSubstr("of the 2.00 GB that cpu has free, with "));
  auto options = demo();
  options.memory.budget = budget;
  budget.device = deploy(options).memory_plan->device_peak - 1;
  const auto said = plan_here(deployment, budget).sentence;
  EXPECT_THAT(said, StartsWith("takes "));
  EXPECT_THAT(said, HasSubstr(" of temporary files and --memory "));
  budget.device = 1'000'000;
  EXPECT_THAT(plan_here(deployment, budget).sentence, StartsWith("does not fit: "));
}

// A container, say, would kill the run without a word.
TEST(ShortageHere, IsToldBeforeAPictureBegins) {
  const Request small{.width = 64, .height = 64}, large{.width = 1024, .height = 1024};
  auto options = demo();
  options.memory = {};
  auto deployment = deploy(options);
  const auto shortage = shortage_here(deployment, large, 200'000'000);
  ASSERT_TRUE(shortage);
  EXPECT_THAT(*shortage, HasSubstr("is predicted to take "));
  EXPECT_THAT(*shortage, HasSubstr("200 MB is free here: --memory 190MB"));
  EXPECT_THAT(*shortage_here(deployment, small, 50'000'000),
              HasSubstr("--memory 47MB would not do"));
  EXPECT_FALSE(shortage_here(deployment, small, 8'000'000'000));
  EXPECT_FALSE(shortage_here(deployment, small, 0)) << "nothing is known of this machine";
  options.memory.budget.device = 1'000'000'000;
  deployment = deploy(options);
  EXPECT_FALSE(shortage_here(deployment, large, 600'000'000)) << "the budget decides";
}

}  // namespace braid::plan_here_test
