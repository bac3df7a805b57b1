// What ranks tell each other about themselves: endings, losses, goodbyes and signs of life. The
// rosters of three ranks, pumped by one thread, by a clock that the test moves.
#include "comm/process/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>

#include "comm/worlds.h"

namespace braid::membership_test {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = Fate::Clock;
using Kind = Membership::StatusMessage::Kind;

// Counts control messages by receiver, and can damage them.
class WatchedWire : public SocketWire {
 public:
  using SocketWire::SocketWire;

  Ticket send(const Message& message) override {
    ++num_sent[message.peer];
    if (damage) damage(message.data);
    return SocketWire::send(message);
  }

  std::map<int, int> num_sent;
  std::function<void(std::byte*)> damage;
};

struct Rank {
  Rank(int rank, std::vector<FileDescriptor> sockets, std::chrono::milliseconds deadline,
       const Clock::time_point& now)
      : wire(rank, std::move(sockets)),
        fate(std::make_shared<Fate>(deadline, [&now] { return now; })),
        membership(wire, fate) {}

  void pump() {
    for (const auto ticket : wire.poll(0us).done) EXPECT_TRUE(membership.finish(ticket));
  }
  void tell(const Membership::StatusMessage& status) { membership.tell(status, {0, 0, 0}); }
  void end(Ending ending) {
    if (ending.kind != Ending::Kind::kFollowed) ending.culprit = wire.rank();
    tell({.kind = Kind::kEnding, .ending = std::move(ending)});
  }
  std::string failure() const {
    return failure_of([&] { fate->check(); });
  }

  WatchedWire wire;
  std::shared_ptr<Fate> fate;
  Membership membership;
};

class Rosters : public testing::Test {
 protected:
  explicit Rosters(std::chrono::milliseconds deadline = 1min) {
    auto sockets = connected(3);
    for (int r = 0; r < 3; ++r)
      ranks_.push_back(
          std::make_unique<Rank>(r, std::move(sockets[std::size_t(r)]), deadline, now_));
  }

  Rank& rank(int r) { return *ranks_[std::size_t(r)]; }
  // Socket pairs hold these few bytes, so three rounds deliver everything.
  void pump() {
    for (int round = 0; round < 3; ++round)
      for (const auto& rank : ranks_) rank->pump();
  }

  Clock::time_point now_{};
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST_F(Rosters, HandOverTheEndingsOfOneRunAfterTheOther) {
  rank(1).end({.kind = Ending::Kind::kFailed, .sentence = "out of paint", .num_channels = 3});
  rank(2).end({});
  rank(1).end({.kind = Ending::Kind::kCancelled, .sentence = "stopped"});
  rank(2).end({.kind = Ending::Kind::kRefused, .sentence = "no such size"});
  pump();
  const auto first = rank(0).membership.await_endings({.sentence = "mine"});
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0].sentence, "mine");
  EXPECT_EQ(first[1].kind, Ending::Kind::kFailed);
  EXPECT_EQ(first[1].sentence, "out of paint");
  EXPECT_EQ(first[1].num_channels, 3);
  EXPECT_EQ(first[2].kind, Ending::Kind::kWell);
  EXPECT_EQ(first[2].sentence, "");
  const auto second = rank(0).membership.await_endings({});
  EXPECT_EQ(second[1].kind, Ending::Kind::kCancelled);
  EXPECT_EQ(second[2].kind, Ending::Kind::kRefused);
}

// Each peer must know how much to drop of what was sent to it, not to another.
TEST_F(Rosters, TellEachRankTheBytesThatWereSentToIt) {
  rank(1).membership.tell({.kind = Kind::kEnding}, {10, 20, 1ull << 40});
  rank(0).end({});
  rank(2).end({});
  pump();
  EXPECT_EQ(rank(0).membership.await_endings({})[1].bytes_sent, 10u);
  EXPECT_EQ(rank(2).membership.await_endings({})[1].bytes_sent, 1ull << 40);
}

TEST_F(Rosters, CutASentenceThatIsTooLong) {
  const std::string long_one = std::string(991, 'x') + "y and more";
  rank(1).end({.kind = Ending::Kind::kFailed, .sentence = long_one});
  rank(2).end({.sentence = long_one.substr(0, 992)});
  pump();
  const auto endings = rank(0).membership.await_endings({});
  EXPECT_EQ(endings[1].sentence, long_one.substr(0, 992));
  EXPECT_EQ(endings[2].sentence, long_one.substr(0, 992));
}

// A length beyond the message would read, or allocate, what is not there.
TEST_F(Rosters, TakeNoSentenceBeyondItsMessage) {
  constexpr std::size_t kLengthAt = 24;  // behind four 32-bit numbers and a 64-bit one
  for (const std::int32_t length : {-1, 1 << 30}) {
    rank(1).wire.damage = [&](std::byte* data) { std::memcpy(data + kLengthAt, &length, 4); };
    rank(1).end({.sentence = "short"});
    rank(2).end({});
    pump();
    const auto sentence = rank(0).membership.await_endings({})[1].sentence;
    EXPECT_EQ(sentence.size(), length < 0 ? 0u : 992u);
  }
}

TEST_F(Rosters, EndARunWithTheFailureOfAnotherRank) {
  rank(0).membership.begin_run();
  rank(1).end({});
  pump();
  EXPECT_EQ(rank(0).failure(), "") << "it ended well";
  rank(2).end({.kind = Ending::Kind::kFailed, .sentence = "out of paint"});
  pump();
  EXPECT_EQ(rank(0).failure(), "rank 2 failed: out of paint");
  EXPECT_FALSE(rank(0).fate->is_lost());
}

// The ending of a rank that only followed can arrive before that of the culprit.
TEST_F(Rosters, NameTheCulpritWhoeverTellsOfIt) {
  rank(0).membership.begin_run();
  rank(1).end({.kind = Ending::Kind::kFollowed, .culprit = 2, .sentence = "out of paint"});
  pump();
  EXPECT_EQ(rank(0).failure(), "rank 2 failed: out of paint");
}

// A rank that is still between two runs must not take the failure for one of the run that it has
// left, nor miss it in the next.
TEST_F(Rosters, KeepAFailureForTheRunThatItBelongsTo) {
  rank(1).end({.kind = Ending::Kind::kFailed, .sentence = "out of paint"});
  pump();
  EXPECT_EQ(rank(0).failure(), "");
  rank(0).membership.begin_run();
  EXPECT_EQ(rank(0).failure(), "rank 1 failed: out of paint");
}

TEST_F(Rosters, SayWhoWasLostAndWhetherItCanSpeak) {
  rank(1).tell({.kind = Kind::kGone, .ending = {.culprit = 2, .sentence = "its process ended"}});
  pump();
  ASSERT_TRUE(rank(0).fate->is_lost());
  EXPECT_EQ(rank(0).fate->culprit(), 2);
  EXPECT_TRUE(is_gone(rank(0).fate->cause()));
  rank(0).tell({.kind = Kind::kLoss, .ending = {.culprit = 1, .sentence = "waited 10 s"}});
  pump();
  EXPECT_EQ(rank(2).failure(), "rank 2 failed: its process ended") << "the first counts";
  ASSERT_TRUE(rank(1).fate->is_lost());
  EXPECT_EQ(message_of(rank(1).fate->cause()), "waited 10 s");
  EXPECT_FALSE(is_gone(rank(1).fate->cause()));
}

TEST_F(Rosters, DoNotMissARankThatSaidGoodbye) {
  rank(1).tell({.kind = Kind::kGoodbye});
  pump();
  EXPECT_TRUE(rank(0).membership.has_left(1));
  EXPECT_FALSE(rank(0).membership.has_left(2));
  EXPECT_FALSE(rank(0).membership.have_all_left());
  rank(0).membership.lose(1, "its process has ended");
  EXPECT_EQ(rank(0).failure(), "");
  rank(2).tell({.kind = Kind::kGoodbye});
  pump();
  EXPECT_TRUE(rank(0).membership.have_all_left());
  EXPECT_EQ(rank(0).failure(), "");
}

TEST_F(Rosters, MissARankThatDidNotSayGoodbye) {
  rank(0).membership.lose(2, "its process has ended");
  EXPECT_EQ(rank(0).failure(), "rank 2 failed: its process has ended");
  EXPECT_TRUE(is_gone(rank(0).fate->cause()));
  const auto await = [&] { (void)rank(0).membership.await_endings({}); };
  EXPECT_EQ(failure_of(await), "the world was lost");
}

// It cannot end this run as all do.
TEST_F(Rosters, LoseTheWorldIfARankLeavesWithoutEndingTheRun) {
  rank(2).end({});
  rank(1).tell({.kind = Kind::kGoodbye});
  pump();
  auto await = std::async(std::launch::async, [&] { (void)rank(0).membership.await_endings({}); });
  EXPECT_EQ(failure_of([&] { await.get(); }), "the world was lost");
  EXPECT_EQ(rank(0).failure(), "rank 1 failed: it has left the others");
}

TEST_F(Rosters, LetARankLeaveThatHasEndedTheRun) {
  for (const int r : {1, 2}) {
    rank(r).end({.sentence = "done"});
    rank(r).tell({.kind = Kind::kGoodbye});
  }
  pump();
  EXPECT_EQ(rank(0).membership.await_endings({})[2].sentence, "done");
  EXPECT_EQ(rank(0).failure(), "");
}

TEST_F(Rosters, WaitForNoMessageToALostRank) {
  rank(0).end({});
  EXPECT_FALSE(rank(0).membership.is_silent());
  rank(0).membership.lose(1, "it hangs");
  EXPECT_FALSE(rank(0).membership.is_silent()) << "rank 2 can still hear it";
  rank(0).membership.lose(2, "it hangs too");
  EXPECT_TRUE(rank(0).membership.is_silent());
  rank(0).end({});
  EXPECT_EQ(rank(0).wire.num_sent[1] + rank(0).wire.num_sent[2], 2) << "nothing more is sent";
}

TEST_F(Rosters, SendNoSignsOfLifeToARankThatHasLeft) {
  rank(1).tell({.kind = Kind::kGoodbye});
  pump();
  rank(0).tell({.kind = Kind::kAlive});
  EXPECT_EQ(rank(0).wire.num_sent[1], 0);
  EXPECT_EQ(rank(0).wire.num_sent[2], 1);
  pump();
  rank(0).tell({.kind = Kind::kGoodbye});  // this it wants to hear
  EXPECT_EQ(rank(0).wire.num_sent[1], 1);
}

// ------------------------------------------------------------------------------- the watch

class WatchedRosters : public Rosters {
 protected:
  static constexpr auto kDeadline = 400ms, kGlimpse = 5ms;
  WatchedRosters() : Rosters(kDeadline) {}

  // `ranks` hear what has come and look at the clock, again and again, for so long.
  void watch_for(Clock::duration time, const std::vector<int>& ranks) {
    for (const auto end = now_ + time; now_ < end; now_ += kGlimpse)
      for (const int r : ranks) {
        rank(r).pump();
        rank(r).membership.keep_watch();
      }
  }
};

// Rank 1 lives and says so, rank 2 does not.
TEST_F(WatchedRosters, LoseTheSilentRankAloneAndNotBeforeTheDeadline) {
  watch_for(kDeadline + kGlimpse, {0, 1});
  EXPECT_EQ(rank(0).failure(), "");
  EXPECT_EQ(rank(1).wire.num_sent[0], 3) << "a sign after each quarter of a deadline";
  watch_for(2 * kDeadline, {0, 1});
  EXPECT_EQ(rank(0).failure(), "rank 2 failed: it has not answered for 0.4 s");
}

// A rank of a suspended machine could not hear the others.
TEST_F(WatchedRosters, ForgiveSilenceWhileTheySlept) {
  rank(0).membership.keep_watch();
  now_ += kDeadline + 50ms;
  watch_for(kDeadline, {0});
  EXPECT_EQ(rank(0).failure(), "");
  watch_for(2 * kGlimpse, {0});
  EXPECT_NE(rank(0).failure(), "") << "the deadline begins anew, once";
}

TEST_F(WatchedRosters, WatchNoRankThatHasLeft) {
  for (const int r : {1, 2}) rank(r).tell({.kind = Kind::kGoodbye});
  pump();
  watch_for(3 * kDeadline, {0});
  EXPECT_EQ(rank(0).failure(), "");
}

}  // namespace braid::membership_test
