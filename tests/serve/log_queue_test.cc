// A log whose reader stalls, goes on, or never reads again.
#include "serve/log_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace braid::serve::log_queue_test {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

// Takes lines while it is open, as a pipe does. Writers share it, since one may outlive its queue.
class Reader {
 public:
  bool take(const std::string& line) {
    std::unique_lock lock(mutex_);
    is_asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
    if (is_full_) return false;
    lines_.push_back(line);
    changed_.notify_all();
    return true;
  }
  void open(bool is_open) {
    const std::scoped_lock lock(mutex_);
    is_open_ = is_open;
    changed_.notify_all();
  }
  void be_full(bool is_full) {
    const std::scoped_lock lock(mutex_);
    is_full_ = is_full;
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_asked_; });
  }
  void wait_for_lines(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lines_.size() >= count; });
  }
  std::vector<std::string> lines() {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
  bool is_open_ = true, is_full_ = false, is_asked_ = false;
};

class Queued : public testing::Test {
 protected:
  LogQueue::Write write() const {
    return [reader = reader_](const std::string& line) { return reader->take(line); };
  }

  std::shared_ptr<Reader> reader_ = std::make_shared<Reader>();
};

TEST_F(Queued, WritesAllLinesInOrderBeforeItEnds) {
  std::vector<std::string> expected;
  {
    LogQueue queue(write());
    for (int i = 0; i < 1000; ++i) queue.add(expected.emplace_back(std::to_string(i) + "\n"));
  }
  EXPECT_EQ(reader_->lines(), expected);
}

TEST_F(Queued, DropsWhatDoesNotFitAndSaysHowMany) {
  reader_->open(false);
  {
    LogQueue queue(write(), {.bytes = 10});
    queue.add("held\n");
    reader_->wait_until_asked();
    for (const auto* const line : {"1234\n", "5678\n", "lost\n", "a", "lost\n"}) queue.add(line);
    reader_->open(true);
    reader_->wait_for_lines(4);
    queue.add("later\n");
  }
  EXPECT_THAT(
      reader_->lines(),
      ElementsAre("held\n", "1234\n", "5678\n",
                  testing::MatchesRegex("time=.* event=warning message=\"3 lines were dropped.*\n"),
                  "later\n"));
}

TEST_F(Queued, CountsLinesThatCannotBeWritten) {
  reader_->be_full(true);
  {
    LogQueue queue(write());
    queue.add("lost\n");
    reader_->wait_until_asked();
    reader_->be_full(false);
  }
  EXPECT_THAT(reader_->lines(), ElementsAre(HasSubstr("\"1 line was dropped")));
}

TEST_F(Queued, EndsWhereNothingCanBeWritten) {
  reader_->be_full(true);
  const auto began = std::chrono::steady_clock::now();
  {
    LogQueue queue(write(), {.at_end = std::chrono::hours(1)});
    queue.add("lost\n");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  EXPECT_TRUE(reader_->lines().empty());
}

TEST_F(Queued, NeverWaitsForAReaderThatReadsNoMore) {
  reader_->open(false);
  const auto began = std::chrono::steady_clock::now();
  {
    LogQueue queue(write(), {.at_end = milliseconds(50)});
    for (int i = 0; i < 10'000; ++i) queue.add(std::string(1000, 'a') + "\n");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  EXPECT_TRUE(reader_->lines().empty());
  reader_->open(true);  // the line that was being written comes late; those behind it are forgotten
  reader_->wait_for_lines(1);
}

}  // namespace braid::serve::log_queue_test
