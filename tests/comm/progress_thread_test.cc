#include "comm/process/progress_thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "comm/worlds.h"
#include "wait_until.h"

namespace braid::progress_thread_test {

// Progress threads of ranks 1 and 2; rank 0 is silent.
class TwoOfThree : public testing::Test {
 protected:
  TwoOfThree() {
    one_.emplace(std::make_unique<SocketWire>(1, std::move(sockets_[1])), fate_of_one_);
    two_.emplace(std::make_unique<SocketWire>(2, std::move(sockets_[2])), fate_of_two_);
  }
  ~TwoOfThree() override {
    fate_of_two_->fail(0, fate_of_one_->cause());
    sockets_[0].clear();
    two_.reset();
    one_.reset();
  }

  // What rank 1 learns when rank 2 tells it that rank 0 failed with this.
  template <class Failure>
  std::exception_ptr told(const char* sentence) {
    two_->tell_loss(0, std::make_exception_ptr(Failure(sentence)));
    EXPECT_TRUE(wait_until([&] { return fate_of_one_->failed(); }));
    EXPECT_EQ(fate_of_one_->culprit(), 0);
    EXPECT_EQ(message_of(fate_of_one_->cause()), sentence);
    return fate_of_one_->cause();
  }

 private:
  std::shared_ptr<Fate> fate_of_one_ = std::make_shared<Fate>(std::chrono::minutes(1)),
                        fate_of_two_ = std::make_shared<Fate>(std::chrono::minutes(1));
  std::vector<std::vector<FileDescriptor>> sockets_ = connected(3);
  std::optional<ProgressThread> one_, two_;
};

// Then the second rank must speak for the first, whichever rank it learned this from.
TEST_F(TwoOfThree, HearWhetherTheFirstIsGone) {
  EXPECT_TRUE(is_gone(told<RankIsGone>("its process has ended")));
}

TEST_F(TwoOfThree, HearWhetherTheFirstCanStillSpeak) {
  EXPECT_FALSE(is_gone(told<WorldLost>("waited 10 s for rank 2")));
}

}  // namespace braid::progress_thread_test
