// Bytes over connected sockets, without progress threads.
#include "comm/process/socket_wire.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <set>

#include "comm/worlds.h"

namespace braid::socket_wire_test {

using namespace std::chrono_literals;

struct Letter {
  explicit Letter(const std::string& text) : bytes(text.size()) {
    std::memcpy(bytes.data(), text.data(), text.size());
  }
  explicit Letter(std::size_t size) : bytes(size) {}
  Wire::Message to(int peer, int channel) {
    return {.peer = peer, .channel = channel, .data = bytes.data(), .size = bytes.size()};
  }
  std::string text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

  std::vector<std::byte> bytes;
};

class TwoWires : public testing::Test {
 protected:
  TwoWires()
      : sockets_(connected(2)), zero_(0, std::move(sockets_[0])), one_(1, std::move(sockets_[1])) {}

  // Polls until all of these are done; false if they are not after so many rounds.
  bool finish(std::set<Wire::Ticket> of_zero, std::set<Wire::Ticket> of_one, int rounds = 2000) {
    for (int i = 0; i < rounds && !(of_zero.empty() && of_one.empty()); ++i) {
      for (const auto ticket : zero_.poll(100us).done) of_zero.erase(ticket);
      const auto events = one_.poll(100us);
      for (const auto ticket : events.done) of_one.erase(ticket);
      lost_.insert(lost_.end(), events.lost.begin(), events.lost.end());
    }
    return of_zero.empty() && of_one.empty();
  }

  std::vector<std::vector<FileDescriptor>> sockets_;
  SocketWire zero_, one_;
  std::vector<Wire::Lost> lost_;  // of rank 1
};

TEST_F(TwoWires, KeepTheOrderOfAChannelAndNoOther) {
  Letter a("first"), b("second"), c("other");
  const auto sent = {zero_.send(a.to(1, 5)), zero_.send(b.to(1, 5)), zero_.send(c.to(1, 6))};
  Letter of_six(5), first(5), second(6);
  const auto on_six = one_.receive(of_six.to(0, 6));
  ASSERT_TRUE(finish(sent, {on_six}));
  EXPECT_EQ(of_six.text(), "other");
  ASSERT_TRUE(finish({}, {one_.receive(first.to(0, 5)), one_.receive(second.to(0, 5))}));
  EXPECT_EQ(first.text(), "first");
  EXPECT_EQ(second.text(), "second");
}

TEST_F(TwoWires, TakeMessagesThatArePartlyThere) {
  Letter large(std::string(5'000'000, 'x')), received(5'000'000);
  const auto sent = zero_.send(large.to(1, 1));
  for (int i = 0; i < 3; ++i) {  // goes to a buffer, as nobody has asked for it
    (void)zero_.poll(100us);
    (void)one_.poll(100us);
  }
  ASSERT_TRUE(finish({sent}, {one_.receive(received.to(0, 1))}));
  EXPECT_EQ(received.text(), large.text());
}

TEST_F(TwoWires, RefuseAMessageOfAnotherSizeThanAgreed) {
  Letter sent("six by"), wanted(5);
  (void)one_.receive(wanted.to(0, 1));
  const auto ticket = zero_.send(sent.to(1, 1));
  EXPECT_THROW((void)finish({ticket}, {0}), std::runtime_error);
}

TEST_F(TwoWires, RefuseAMessageOfAnotherSizeThatCameUnasked) {
  Letter sent("six by"), wanted(5);
  ASSERT_TRUE(finish({zero_.send(sent.to(1, 2))}, {}));
  for (int i = 0; i < 100; ++i) (void)one_.poll(100us);
  EXPECT_THROW((void)one_.receive(wanted.to(0, 2)), std::runtime_error);
}

TEST_F(TwoWires, DropWhatHasComeAndWhatIsAwaited) {
  Letter unasked("unasked"), early(7), control("kept"), kept(4);
  const auto sent = {zero_.send(unasked.to(1, 1)), zero_.send(control.to(1, Wire::kControl))};
  const auto awaited = one_.receive(early.to(0, 2));
  const auto on_control = one_.receive(kept.to(0, Wire::kControl));
  ASSERT_TRUE(finish(sent, {on_control}));
  one_.drop(0, unasked.bytes.size());
  EXPECT_FALSE(one_.is_dropping());

  Letter fresh("fresh 1"), again("fresh 2"), first(7), second(7);
  const auto sent_again = {zero_.send(fresh.to(1, 1)), zero_.send(again.to(1, 2))};
  ASSERT_TRUE(finish(sent_again, {one_.receive(first.to(0, 1)), one_.receive(second.to(0, 2))}));
  EXPECT_EQ(first.text(), "fresh 1");
  EXPECT_EQ(second.text(), "fresh 2");
  EXPECT_EQ(early.text(), std::string(7, '\0'));
  EXPECT_FALSE(finish({}, {awaited}, 100));
}

TEST_F(TwoWires, KeepControlMessagesWhenTheyDrop) {
  Letter control("kept"), kept(4), later(4);
  ASSERT_TRUE(finish({zero_.send(control.to(1, Wire::kControl))}, {}));
  for (int i = 0; i < 100; ++i) (void)one_.poll(100us);
  one_.drop(0, 0);
  ASSERT_TRUE(finish({}, {one_.receive(kept.to(0, Wire::kControl))}));
  EXPECT_EQ(kept.text(), "kept");
  const auto awaited = one_.receive(later.to(0, Wire::kControl));
  one_.drop(0, 0);
  ASSERT_TRUE(finish({zero_.send(control.to(1, Wire::kControl))}, {awaited}));
}

TEST_F(TwoWires, SayOnceWhoIsLost) {
  zero_.abandon();
  for (int i = 0; i < 10; ++i) (void)finish({}, {});
  for (int i = 0; i < 10; ++i) {
    const auto events = one_.poll(100us);
    lost_.insert(lost_.end(), events.lost.begin(), events.lost.end());
  }
  ASSERT_EQ(lost_.size(), 1u);
  EXPECT_EQ(lost_[0].peer, 0);
  EXPECT_EQ(lost_[0].why, "its process has ended");
}

TEST_F(TwoWires, LoseAPeerThatSendsWhatIsNoMessage) {
  for (const std::uint64_t size : {std::uint64_t(0), std::uint64_t(1) << 50}) {
    auto sockets = connected(2);
    SocketWire wire(1, std::move(sockets[1]));
    const std::uint64_t header[2] = {1, size};
    ASSERT_EQ(::write(sockets[0][1].get(), header, sizeof header), ssize_t(sizeof header));
    const auto events = wire.poll(100ms);
    ASSERT_EQ(events.lost.size(), 1u);
    EXPECT_EQ(events.lost[0].why, "it sent something that is not a message");
  }
}

// It takes one more descriptor, of which there are none.
TEST(SocketWire, ClosesItsConnectionsWhereItCannotBeMade) {
  auto sockets = connected(2);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_THROW(SocketWire(0, std::move(sockets[0])), std::runtime_error);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  char byte;
  EXPECT_EQ(::recv(sockets[1][0].get(), &byte, 1, MSG_DONTWAIT), 0) << "the other end is open";
}

TEST_F(TwoWires, AreWoken) {
  const auto began = std::chrono::steady_clock::now();
  std::jthread waker([&] { one_.wake(); });
  (void)one_.poll(10s);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

}  // namespace braid::socket_wire_test
