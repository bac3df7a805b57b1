// `braid bench`: figures in order, and refusals before anything is loaded.
#include <algorithm>

#include "base/file.h"
#include "workplace.h"

namespace braid {
namespace {

using testing::HasSubstr;

class Bench : public Workplace {};

TEST_F(Bench, TimesTheBundledModelUnderALayout) {
  const auto finished = braid({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--tp", "2",
                               "--size", "64x64", "--runs", "3", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  const auto json = nlohmann::json::parse(finished.out);
  EXPECT_EQ(json["gpus"], 2);
  ASSERT_EQ(json["steps_s"].size(), 3u);
  auto seconds = json["steps_s"].get<std::vector<double>>();
  std::sort(seconds.begin(), seconds.end());
  EXPECT_EQ(json["step_s"], seconds[1]);
  EXPECT_GT(seconds[0], 0);
  // two a double block, one a single: the bundled model has two and six
  const auto config =
      nlohmann::json::parse(read_file(BRAID_SOURCE_DIR "/models/demo/transformer/config.json"));
  EXPECT_EQ(json["step_traffic"]["tp"]["all_reduces"],
            2 * config["num_layers"].get<int>() + config["num_single_layers"].get<int>());
  EXPECT_TRUE(files().empty());
}

TEST_F(Bench, SaysWhatItTimed) {
  const auto finished =
      braid({"bench", "-m", BRAID_SOURCE_DIR "/models/demo", "--size", "64x64", "--runs", "1"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr(" an evaluation ("));
}

TEST_F(Bench, RefusesWhatItCannotTime) {
  expect_bad_input({"bench", "--synthetic", "flux9"},
                   "synthetic weights have the shapes of flux1-dev or flux1-schnell, not 'flux9'");
  expect_bad_input({"bench", "--double", "2"},
                   "numbers of blocks can be chosen for synthetic weights only");
  expect_bad_input({"bench", "--synthetic", "flux1-dev", "--double", "0"}, "--double");
  expect_bad_input({"bench", "--runs", "0"}, "--runs");
  expect_bad_input({"bench", "-m", "nowhere"}, "there is no model at nowhere");
}

}  // namespace
}  // namespace braid
