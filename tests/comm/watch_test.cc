// Wires that fail in various ways, and the progress threads' watch over silent peers.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>

#include "comm/worlds.h"
#include "wait_until.h"

namespace braid::watch_test {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kDeadline = 400ms;

// Time passes only where a test says so, in steps that wait for all wires that work. So no rank is
// late, however busy the machine is.
class SteppedTime {
 public:
  using Clock = Fate::Clock;

  Clock::time_point now() const { return Clock::time_point(Clock::duration(now_)); }
  void jump(Clock::duration time) { now_ += time.count(); }
  void pass(Clock::duration time) {
    for (const auto end = now() + time; now() < end; jump(kDeadline / 8))
      for (std::size_t r = 0; r < kMostRanks; ++r) await_polls_of(r);
  }
  void wire_polls(int rank) { ++num_polls_[std::size_t(rank)]; }
  void wire_starts(int rank) { is_working_[std::size_t(rank)] = true; }
  void wire_stops(int rank) { is_working_[std::size_t(rank)] = false; }

 private:
  static constexpr std::size_t kMostRanks = 3;

  // Enough to send a sign of life, and to hear one.
  void await_polls_of(std::size_t rank) const {
    const int enough = num_polls_[rank] + 4;
    while (num_polls_[rank] < enough && is_working_[rank]) std::this_thread::sleep_for(100us);
  }

  std::atomic<Clock::rep> now_ = 0;
  std::array<std::atomic<int>, kMostRanks> num_polls_{};
  std::array<std::atomic<bool>, kMostRanks> is_working_{};
};

// A socket wire that can be told to do nothing, like that of a hanging process, or to fail.
class FaultyWire : public SocketWire {
 public:
  FaultyWire(int rank, std::vector<FileDescriptor> sockets, SteppedTime& time)
      : SocketWire(rank, std::move(sockets)), time_(time) {
    time_.wire_starts(rank);
  }

  Events poll(std::chrono::microseconds at_most) override {
    if (is_broken_) throw std::runtime_error("the network card is on fire");
    time_.wire_polls(rank());
    at_most = std::min<std::chrono::microseconds>(at_most, 500us);
    if (!is_frozen_) return SocketWire::poll(at_most);
    std::this_thread::sleep_for(at_most);
    return {};
  }
  void close() override {
    time_.wire_stops(rank());
    SocketWire::close();
  }
  void abandon() override {
    time_.wire_stops(rank());
    SocketWire::abandon();
  }
  // Its rank still watches the others: else it would take all time that passes for its own sleep.
  void freeze() { is_frozen_ = true; }
  void thaw() { is_frozen_ = false; }
  void fail() {
    is_broken_ = true;
    time_.wire_stops(rank());
  }

 private:
  SteppedTime& time_;
  std::atomic<bool> is_frozen_ = false, is_broken_ = false;
};

// Worlds whose ranks are threads, with access to their wires.
class Watch : public testing::Test {
 protected:
  using Body = std::function<void(const Group&, FaultyWire&)>;

  std::shared_ptr<Fate> new_fate(std::chrono::milliseconds deadline = kDeadline) {
    return std::make_shared<Fate>(deadline, [this] { return time_.now(); });
  }
  // The error of each rank.
  std::vector<std::string> failures(int size, const Body& body) {
    std::vector<std::string> seen(static_cast<std::size_t>(size));
    on_connected_ranks(size, [&](int rank, auto sockets) {
      auto wire = std::make_unique<FaultyWire>(rank, std::move(sockets), time_);
      auto& faulty = *wire;
      ProcessWorld world(std::move(wire), new_fate());
      seen[std::size_t(rank)] =
          failure_of([&] { world.run([&](const Group& g) { body(g, faulty); }); });
      faulty.thaw();
    });
    return seen;
  }

  SteppedTime time_;
};

TEST_F(Watch, NoticesARankThatHangsWhileAnotherComputes) {
  const auto seen = failures(3, [&](const Group& g, FaultyWire& wire) {
    g.await();
    if (g.rank() == 2) {
      wire.freeze();
      return time_.pass(2 * kDeadline);
    }
    if (g.rank() == 1) return g.await();
    compute_until_failure(g);
  });
  EXPECT_EQ(seen[0], "rank 2 failed: it has not answered for 0.4 s");
  EXPECT_EQ(seen[1], "rank 2 failed: it has not answered for 0.4 s");
}

TEST_F(Watch, NoticesARankThatHangsBeforeItFails) {
  const auto seen = failures(2, [&](const Group& g, FaultyWire& wire) {
    g.await();
    if (g.rank() == 0) return;
    wire.freeze();
    time_.pass(2 * kDeadline);
    throw Error("out of paint");
  });
  EXPECT_EQ(seen[0], "rank 1 failed: it has not answered for 0.4 s");
}

// A busy rank still sends signs of life, so the others wait longer than the deadline.
TEST_F(Watch, LetsARankComputeForLong) {
  const auto seen = failures(2, [&](const Group& g, FaultyWire&) {
    if (g.rank() == 1) time_.pass(4 * kDeadline);
    g.await();
  });
  EXPECT_EQ(seen, std::vector<std::string>(2));
}

// Silence while the machine was suspended is nobody's fault.
TEST_F(Watch, ForgivesAMachineThatWasSuspended) {
  const auto seen = failures(2, [&](const Group& g, FaultyWire&) {
    g.await();
    if (g.rank() == 0) {
      time_.jump(2 * kDeadline);
      time_.pass(kDeadline);
    }
    g.await();
  });
  EXPECT_EQ(seen, std::vector<std::string>(2));
}

TEST_F(Watch, EndsAllWhenAWireFails) {
  const auto seen = failures(2, [&](const Group& g, FaultyWire& wire) {
    g.await();
    if (g.rank() == 1) {
      wire.fail();
      time_.pass(2 * kDeadline);
    }
    g.await();
  });
  EXPECT_EQ(seen[0], "rank 1 failed: it has not answered for 0.4 s");
  EXPECT_EQ(seen[1], "rank 1 failed: the network card is on fire");
}

// Waiting for a message from a rank that has said goodbye ends.
TEST_F(Watch, EndsAWaitForARankThatHasLeft) {
  auto sockets = connected(2);
  auto leaver = std::async(std::launch::async, [&] {
    ProcessWorld(std::make_unique<FaultyWire>(1, std::move(sockets[1]), time_),
                 new_fate(10 * kDeadline));
  });
  ProcessWorld world(std::make_unique<FaultyWire>(0, std::move(sockets[0]), time_), new_fate());
  std::jthread clock;
  const auto failure = failure_of([&] {
    world.run([&](const Group& g) {
      clock = std::jthread([&](const std::stop_token& over) {
        while (!over.stop_requested()) time_.pass(kDeadline / 8);
      });
      g.await();
    });
  });
  EXPECT_EQ(failure, "waited 0.4 s for rank 1");
}

// Several messages arriving together with the end of the connection.
TEST(LastWords, OfARankAreHeardBeforeItsEnd) {
  auto sockets = connected(3);
  const auto fate = std::make_shared<Fate>(1min);
  SteppedTime time;
  auto wire = std::make_unique<FaultyWire>(0, std::move(sockets[0]), time);
  auto& faulty = *wire;
  faulty.freeze();
  ProgressThread progress(std::move(wire), fate);
  {
    SocketWire of_one(1, std::move(sockets[1]));
    Membership membership(of_one, std::make_shared<Fate>(1min));
    using Kind = Membership::StatusMessage::Kind;
    const std::vector<std::uint64_t> nothing_sent(3);
    membership.tell({.kind = Kind::kAlive}, nothing_sent);
    membership.tell({.kind = Kind::kLoss, .ending = {.culprit = 2, .sentence = "it hangs"}},
                    nothing_sent);
    while (!membership.is_silent())
      for (const auto ticket : of_one.poll(1ms).done) membership.finish(ticket);
    of_one.abandon();
  }
  faulty.thaw();
  EXPECT_TRUE(wait_until([&] { return fate->failed(); }));
  EXPECT_EQ(fate->culprit(), 2);
  EXPECT_EQ(message_of(fate->cause()), "it hangs");
}

// Signs of life must not pile up for a peer that takes none: its process may hang for hours.
TEST(SignsOfLife, AreNotRepeatedBeforeTheLastWasTaken) {
  class CountingWire : public SocketWire {
   public:
    using SocketWire::SocketWire;
    Ticket send(const Message& message) override {
      ++num_sent;
      return SocketWire::send(message);
    }
    int num_sent = 0;
  };
  auto sockets = connected(2);
  CountingWire wire(0, std::move(sockets[0]));
  Membership membership(wire, std::make_shared<Fate>(1min));
  const std::vector<std::uint64_t> nothing_sent(2);
  const auto tell_thrice = [&] {
    for (int i = 0; i < 3; ++i)
      membership.tell({.kind = Membership::StatusMessage::Kind::kAlive}, nothing_sent);
  };
  tell_thrice();
  EXPECT_EQ(wire.num_sent, 1);
  while (!membership.is_silent())
    for (const auto ticket : wire.poll(1ms).done) membership.finish(ticket);
  tell_thrice();
  EXPECT_EQ(wire.num_sent, 2);
}

}  // namespace braid::watch_test
