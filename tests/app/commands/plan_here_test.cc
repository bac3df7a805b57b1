// What `braid info` says of a model and free memory.
#include "app/commands/plan_here.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "message_of.h"
#include "pipeline/deployment/deployment.h"

namespace braid::plan_here_test {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

PipelineOptions demo() {
  PipelineOptions options{.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo"};
  options.memory.offload = {.transformer = OffloadMode::kLeaf, .prefetch = 0};
  return options;
}

TEST(PlanHere, CountsOnTheFilesThatGenerateMakes) {
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
  const auto refusal = plan_here(deployment, budget).sentence;
  EXPECT_THAT(refusal, StartsWith("does not fit: "));
  options.memory.budget = budget;
  const auto without_files = message_of([&] { (void)deploy(options); });
  EXPECT_THAT(refusal, Not(HasSubstr(without_files))) << "files take less";
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

// Two cards that take alike are as slow as the slower one with half of the work.
TEST(SlowerSplitHere, IsToldForALayoutThatWasAskedFor) {
  const auto host = described_host(devices_named("", "rtx-3090,rtx-5090"));
  DeployOptions asked{.pipeline = {.model = "", .devices = {"cuda:0-1"}, .layout = {.tp = 2}},
                      .synthetic = "flux1-dev"};
  asked.pipeline.memory.quantize = asked.pipeline.memory.quantize_text = Quantize::kInt8;
  const auto said = slower_split_here(deploy(asked, host), {.prompts = {"a"}}, host);
  ASSERT_TRUE(said);
  EXPECT_THAT(*said, StartsWith("tp 2 over pcie4 (12.6 GB/s) is predicted to take "));
  EXPECT_THAT(*said, HasSubstr(" a picture, cuda:1 alone "));
  EXPECT_THAT(*said, HasSubstr(": --device cuda:1 without degrees is faster"));
  const Request three{.prompts = {"a"}, .num_images = 3, .batch_size = 2};
  asked.pipeline.layout = {.dp = 2};
  EXPECT_TRUE(slower_split_here(deploy(asked, host), three, host));
  asked.pipeline.layout.shares = {.dp = {1, 2}};
  EXPECT_FALSE(slower_split_here(deploy(asked, host), three, host));
  asked.pipeline.layout = {.fit = Fit::kAuto};
  EXPECT_FALSE(slower_split_here(deploy(asked, host), {.prompts = {"a"}}, host)) << "was chosen";
  EXPECT_FALSE(slower_split_here(deploy(demo()), {.prompts = {"a"}}));
}

TEST(IdleRanksHere, AreToldWhereTheyHaveNoPicture) {
  auto options = demo();
  options.layout = {.dp = 2};
  const auto deployment = deploy(options);
  Request request{.prompts = {"a"}, .width = 64, .height = 64};
  const auto idle = idle_ranks_here(deployment, request);
  ASSERT_TRUE(idle);
  EXPECT_THAT(*idle, StartsWith("dp 2 leaves a rank without a picture, there is 1: such ranks "));
  request.num_images = 2;
  EXPECT_FALSE(idle_ranks_here(deployment, request));
  request.num_images = 1;
  request.prompts.emplace_back("b");
  EXPECT_FALSE(idle_ranks_here(deployment, request));
  EXPECT_FALSE(idle_ranks_here(deploy(demo()), {.prompts = {"a"}}));
}

}  // namespace braid::plan_here_test
