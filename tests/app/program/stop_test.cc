// Ctrl-C and similar signals: exit code 128 + signal, soon, and no incomplete file.
#include <algorithm>
#include <chrono>
#include <csignal>

#include "workplace.h"

namespace braid::stop_test {

class Stop : public Workplace {
 protected:
  Invocation endless(std::vector<std::string> more = {}) const {
    Invocation all{.arguments = {"generate", "a", "-m", BRAID_SOURCE_DIR "/models/demo", "--steps",
                                 "10000", "--size", "64x64"},
                   .folder = folder_,
                   .from_shell = true};
    all.arguments.insert(all.arguments.end(), more.begin(), more.end());
    return all;
  }
  void expect_stop(int signal, const std::string& when) const {
    Subprocess running(endless());
    ASSERT_TRUE(running.wait_for(when));
    running.send(signal);
    const auto finished = running.finish();
    EXPECT_EQ(finished.exit_code, 128 + signal) << finished.err;
    EXPECT_THAT(finished.err, testing::EndsWith("braid: stopped\n"));
    EXPECT_EQ(finished.out, "");
    EXPECT_TRUE(files().empty());
  }
};

TEST_F(Stop, DuringDenoisingLeavesNothing) {
  expect_stop(SIGINT, "denoise  10,000 steps");
  expect_stop(SIGTERM, "denoise  10,000 steps");
  expect_stop(SIGHUP, "denoise  10,000 steps");
}

TEST_F(Stop, WhileLoadingLeavesNothing) { expect_stop(SIGINT, "load "); }

TEST_F(Stop, BetweenPicturesKeepsThoseThatAreWhole) {
  Subprocess running(endless({"-n", "1000", "--steps", "2", "-o", "x.png"}));
  ASSERT_TRUE(running.wait_for("picture 3 of 1000"));
  running.send(SIGINT);
  const auto finished = running.finish();
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.out, testing::StartsWith("x-000.png\nx-001.png\n"));
  EXPECT_EQ(std::count(finished.out.begin(), finished.out.end(), '\n'), long(files().size()));
}

TEST_F(Stop, InTheMidstOfALongStepTakesTwoSecondsAtMost) {
  Subprocess running(endless({"--size", "1024x1024"}));
  ASSERT_TRUE(running.wait_for("denoise  10,000 steps"));
  const auto before = std::chrono::steady_clock::now();
  running.send(SIGINT);
  EXPECT_EQ(running.finish().exit_code, 130);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
}

TEST_F(Stop, WhileWaitingForPromptsIsImmediate) {
  Subprocess running({.arguments = {"generate", "--prompt-file", "-"},
                      .folder = folder_,
                      .input = "a\n",
                      .keep_input_open = true});
  running.wait_until_input_is_read();
  running.send(SIGINT);
  EXPECT_EQ(running.finish().exit_code, -SIGINT);  // shown by shells as 130
}

}  // namespace braid::stop_test
