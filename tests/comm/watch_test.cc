// Wires that fail in various ways, and the couriers' watch over silent peers.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>

#include "comm/worlds.h"

namespace braid::watch_test {

using testing::HasSubstr;
using namespace std::chrono_literals;

// A socket wire that can be told to do nothing, like that of a hanging process, to pause for a
// while, or to fail.
class FaultyWire : public SocketWire {
 public:
  using SocketWire::SocketWire;

  Events poll(std::chrono::microseconds at_most) override {
    if (is_broken) throw std::runtime_error("the network card is on fire");
    if (is_suspended.exchange(false)) {
      std::this_thread::sleep_for(1500ms);
      return {};
    }
    if (!is_frozen) return SocketWire::poll(at_most);
    std::this_thread::sleep_for(at_most);
    return {};
  }

  std::atomic<bool> is_frozen = false, is_broken = false, is_suspended = false;
};

// Worlds whose ranks are threads, with access to their wires.
class Watch : public testing::Test {
 protected:
  using Body = std::function<void(const Group&, FaultyWire&)>;

  // The error of each rank.
  static std::vector<std::string> failures(int size, std::chrono::milliseconds deadline,
                                           const Body& body) {
    const auto sockets = connected(size);
    std::vector<std::string> seen(sockets.size());
    std::vector<std::jthread> ranks;
    for (std::size_t r = 0; r < sockets.size(); ++r)
      ranks.emplace_back([&, r] {
        auto wire = std::make_unique<FaultyWire>(int(r), sockets[r]);
        auto& faulty = *wire;
        ProcessWorld world(std::move(wire), deadline);
        seen[r] = failure_of([&] { world.run([&](const Group& g) { body(g, faulty); }); });
        faulty.is_frozen = false;
      });
    ranks.clear();
    return seen;
  }
};

TEST_F(Watch, NoticesARankThatHangsWhileAnotherComputes) {
  const auto seen = failures(3, 400ms, [](const Group& g, FaultyWire& wire) {
    g.barrier();
    if (g.rank() == 2) {
      wire.is_frozen = true;
      std::this_thread::sleep_for(1500ms);
      return;
    }
    if (g.rank() == 1) return g.await();
    std::this_thread::sleep_for(1200ms);
    g.poll();
    ADD_FAILURE() << "nothing was noticed";
  });
  EXPECT_EQ(seen[0], "rank 2 failed: it has not answered for 0.4 s");
  EXPECT_EQ(seen[1], "rank 2 failed: it has not answered for 0.4 s");
}

TEST_F(Watch, NoticesARankThatHangsAfterItFailed) {
  const auto seen = failures(2, 400ms, [](const Group& g, FaultyWire& wire) {
    g.barrier();
    if (g.rank() == 0) return;
    wire.is_frozen = true;
    std::this_thread::sleep_for(1s);
    throw Error("out of paint");
  });
  EXPECT_EQ(seen[0], "rank 1 failed: it has not answered for 0.4 s");
}

// A busy rank still sends signs of life, so the others wait longer than the deadline.
TEST_F(Watch, LetsARankComputeForLong) {
  const auto seen = failures(2, 300ms, [](const Group& g, FaultyWire&) {
    if (g.rank() == 1) std::this_thread::sleep_for(1200ms);
    g.await();
  });
  EXPECT_EQ(seen, std::vector<std::string>(2));
}

// Silence while the machine was suspended is nobody's fault.
TEST_F(Watch, ForgivesAMachineThatWasSuspended) {
  const auto seen = failures(2, 1s, [](const Group& g, FaultyWire& wire) {
    g.barrier();
    wire.is_suspended = true;
    std::this_thread::sleep_for(100ms);
    g.await();
  });
  EXPECT_EQ(seen, std::vector<std::string>(2));
}

TEST_F(Watch, EndsAllWhenAWireFails) {
  const auto seen = failures(2, 500ms, [](const Group& g, FaultyWire& wire) {
    g.barrier();
    if (g.rank() == 1) wire.is_broken = true;
    g.await();
    g.await();
  });
  EXPECT_EQ(seen[0], "rank 1 failed: it has not answered for 0.5 s");
  EXPECT_EQ(seen[1], "rank 1 failed: the network card is on fire");
}

// Waiting for a message from a rank that has said goodbye ends.
TEST_F(Watch, EndsAWaitForARankThatHasLeft) {
  const auto sockets = connected(2);
  auto leaver = std::async(std::launch::async, [&] {
    ProcessWorld(std::make_unique<SocketWire>(1, sockets[1]), 300ms);
  });
  ProcessWorld world(std::make_unique<SocketWire>(0, sockets[0]), 300ms);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_NE(failure_of([&] { world.run([](const Group& g) { g.await(); }); }), "");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
}

// Several messages arriving together with the end of the connection.
TEST(LastWords, OfARankAreHeardBeforeItsEnd) {
  const auto sockets = connected(3);
  const auto fate = std::make_shared<Fate>(1min);
  auto wire = std::make_unique<FaultyWire>(0, sockets[0]);
  auto& faulty = *wire;
  faulty.is_frozen = true;
  ProgressThread progress(std::move(wire), fate);
  {
    SocketWire of_one(1, sockets[1]);
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
  faulty.is_frozen = false;
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (!fate->failed() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(fate->culprit(), 2);
  EXPECT_EQ(message_of(fate->cause()), "it hangs");
  for (const int socket : sockets[2])
    if (socket >= 0) ::close(socket);
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
  const auto sockets = connected(2);
  CountingWire wire(0, sockets[0]);
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
  ::close(sockets[1][0]);
}

}  // namespace braid::watch_test
