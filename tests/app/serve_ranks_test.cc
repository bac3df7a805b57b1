// What the first rank tells the others: every field of a request.
#include "app/commands/serve_ranks.h"

#include <gtest/gtest.h>

namespace braid::serve_ranks_test {

TEST(ServeRanks, TellAllOfARequest) {
  const Request request{.prompts = {"a \xe2\x98\x85"},
                        .prompts_2 = {"b"},
                        .negative_prompt = "c",
                        .negative_prompt_2 = "d",
                        .true_cfg = 1.1,
                        .guidance_rescale = 0.2,
                        .cfg_norm_cap = 3.3,
                        .cfg_until = 0.4,
                        .width = 5,
                        .height = 6,
                        .steps = 7,
                        .guidance = 0.1 + 0.2,  // to the last bit
                        .max_sequence_length = 8,
                        .seed = 18446744073709551615u,
                        .num_images = 9,
                        .batch_size = 10,
                        .vae_tiling = VaeTiling::kOff};
  const auto told = request_of_text(text_of_request(request));
  EXPECT_EQ(text_of_request(told), text_of_request(request));
  EXPECT_EQ(told.prompts, request.prompts);
  EXPECT_EQ(told.prompts_2, request.prompts_2);
  EXPECT_EQ(told.negative_prompt, "c");
  EXPECT_EQ(told.cfg_until, 0.4);
  EXPECT_EQ(told.guidance, 0.1 + 0.2);
  EXPECT_EQ(told.max_sequence_length, 8);
  EXPECT_EQ(told.seed, request.seed);
  EXPECT_EQ(told.batch_size, 10);
  EXPECT_EQ(told.vae_tiling, VaeTiling::kOff);
}

TEST(ServeRanks, LeaveUnsetWhatIsUnset) {
  const auto told = request_of_text(text_of_request({.prompts = {"a"}}));
  EXPECT_EQ(told.width, std::nullopt);
  EXPECT_EQ(told.negative_prompt, std::nullopt);
  EXPECT_EQ(told.guidance, std::nullopt);
}

}  // namespace braid::serve_ranks_test
