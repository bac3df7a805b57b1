// What is shown of a run, with the test's own clock and terminal.
#include "app/print/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::progress_test {

using testing::HasSubstr;

class ProgressTest : public testing::Test {
 protected:
  DisplayOptions on(Display display) {
    return {.display = display,
            .write = [this](std::string_view text) { written_ += text; },
            .now = [this] { return now_; },
            .columns = [this] { return columns_; }};
  }
  // What was written since the last call.
  std::string take() { return std::exchange(written_, ""); }

  std::string written_;
  double now_ = 100;
  int columns_ = 80;
};

Progress step(int done, int total, int first_picture = 0) {
  return {.phase = Phase::kDenoise,
          .done = done,
          .total = total,
          .first_picture = first_picture,
          .num_pictures = 1};
}

TEST_F(ProgressTest, PlainLinesTellBeginningAndEndOfLongPhases) {
  ProgressDisplay display(on(Display::kPlain));
  display.show({.phase = Phase::kLoad});
  EXPECT_EQ(take(), "");
  now_ += 0.5;
  display.show({.phase = Phase::kLoad, .done = 1'000'000, .total = 2'000'000});
  now_ += 0.5;
  display.show({.phase = Phase::kLoad, .done = 2'000'000, .total = 2'000'000});
  EXPECT_EQ(take(), "load     2.00 MB ...\n");
  display.show({.phase = Phase::kText, .done = 0, .total = 1});
  EXPECT_EQ(take(), "load     2.00 MB in 1.00 s, 2.00 MB/s\n");
  now_ += 0.1;
  display.show({.phase = Phase::kText, .done = 1, .total = 1});
  for (int i = 0; i <= 20; ++i, now_ += 0.1) display.show(step(i, 20));
  display.finish();
  EXPECT_EQ(take(),
            "text     1 prompt in 0.100 s\n"
            "denoise  20 steps ...\n"
            "denoise  20 steps in 2.10 s, 0.105 s/it\n");
}

TEST_F(ProgressTest, PlainLinesOfSlowStepsComeEveryHalfMinute) {
  ProgressDisplay display(on(Display::kPlain));
  for (int i = 0; i <= 10; ++i, now_ += 12) display.show(step(i, 10));
  EXPECT_EQ(take(),
            "denoise  10 steps ...\n"
            "denoise  3/10 steps, 12.0 s/it, ETA 1:24\n"
            "denoise  6/10 steps, 12.0 s/it, ETA 0:48\n"
            "denoise  9/10 steps, 12.0 s/it, ETA 0:12\n");
}

TEST_F(ProgressTest, ATerminalHasOneLineThatIsDrawnAgain) {
  ProgressDisplay display(on(Display::kTerminal));
  display.show(step(0, 4));
  EXPECT_EQ(take(), "\r\x1b[Kdenoise  [..............................]  0/4 steps");
  now_ += 2;
  display.show(step(1, 4));
  EXPECT_EQ(take(),
            "\r\x1b[Kdenoise  [#######.......................]  1/4 steps, 2.00 s/it, ETA 0:06");
  now_ += 6;
  display.show(step(4, 4));
  take();
  display.finish();
  EXPECT_EQ(take(), "\r\x1b[Kdenoise  4 steps in 8.00 s, 2.00 s/it\n");
}

TEST_F(ProgressTest, ATerminalIsNotFlooded) {
  ProgressDisplay display(on(Display::kTerminal));
  for (int i = 0; i < 1000; ++i, now_ += 0.001) display.show(step(i, 1000));
  const auto text = take();
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 11);
}

TEST_F(ProgressTest, NoLineIsWiderThanItsTerminal) {
  for (columns_ = 0; columns_ < 100; ++columns_) {
    ProgressDisplay display(on(Display::kTerminal));
    display.expect_pictures(1000);
    display.show(step(0, 10'000, 998));
    now_ += 1;
    take();
    display.show(step(1, 10'000, 998));
    EXPECT_LE(take().size(), std::size_t(4 + std::max(0, columns_ - 1)));
  }
}

TEST_F(ProgressTest, SeveralPicturesAreTold) {
  ProgressDisplay display(on(Display::kPlain));
  display.expect_pictures(3);
  display.show(step(0, 4, 0));
  display.show(step(4, 4, 0));
  display.show(
      {.phase = Phase::kDenoise, .done = 0, .total = 4, .first_picture = 1, .num_pictures = 2});
  const auto text = take();
  EXPECT_THAT(text, HasSubstr("denoise  picture 1 of 3: 4 steps ...\n"));
  EXPECT_THAT(text, HasSubstr("denoise  picture 1 of 3: 4 steps in 0.000 s"));
  EXPECT_THAT(text, HasSubstr("denoise  pictures 2-3 of 3: 4 steps ...\n"));
}

TEST_F(ProgressTest, WarningsAndPathsStandOnLinesOfTheirOwn) {
  ProgressDisplay display(on(Display::kTerminal));
  display.show(step(0, 4));
  take();
  display.say("warning: a\nb");
  EXPECT_EQ(take(), "\r\x1b[Kbraid: warning: a b\n");
  display.clear();
  EXPECT_EQ(take(), "");
}

TEST_F(ProgressTest, AnErrorInTheMidstBeginsANewLine) {
  {
    ProgressDisplay display(on(Display::kTerminal));
    display.show(step(0, 4));
    take();
  }
  EXPECT_EQ(take(), "\n");
}

TEST_F(ProgressTest, SilenceIsSilent) {
  {
    ProgressDisplay display(on(Display::kSilent));
    display.show(step(0, 4));
    display.say("warning");
    display.finish();
  }
  EXPECT_EQ(take(), "");
}

}  // namespace braid::progress_test
