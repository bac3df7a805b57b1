// Ranks meet at a store that may outlive them, and tell each other from strangers.
#include "comm/process/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <sstream>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm/process/meeting.h"
#include "comm/process/rendezvous.h"
#include "comm/worlds.h"
#include "message_of.h"
#include "wait_until.h"

namespace braid::handshake_test {

using testing::HasSubstr;
using namespace std::chrono_literals;

// The store of torchrun's agent, which outlives the ranks.
class AgentStore {
 public:
  AgentStore() {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    empty_ = num_keys();
  }
  Launch launch_of(int rank, int size) const {
    return {.launcher = "torchrun",
            .rank = rank,
            .size = size,
            .host = "127.0.0.1",
            .port = store_->getPort(),
            .has_server = true};
  }
  // What rank 0 says in the store, once it has.
  struct Invitation {
    std::uint64_t token = 0;
    int port = 0;
  };
  Invitation invitation() const {
    const auto bytes = store_->get("braid/meeting");
    Invitation said;
    std::istringstream(std::string(bytes.begin(), bytes.end())) >> said.token >> said.port;
    return said;
  }
  bool is_empty() const { return num_keys() == empty_; }

 private:
  std::int64_t num_keys() const { return store_->getNumKeys(); }

  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::int64_t empty_ = 0;
};

// The thread of a rank that meets the others there.
std::jthread start_rank(const AgentStore& agent, int rank, int size,
                        std::chrono::milliseconds deadline = 10s) {
  return std::jthread([&agent, rank, size, deadline] {
    try {
      ProcessWorld world(meet_over_sockets(agent.launch_of(rank, size), 20s), deadline);
      world.run([](const Group& group) { group.barrier(); });
    } catch (const std::exception& e) {
      ADD_FAILURE() << "rank " << rank << ": " << e.what();
    }
  });
}

TEST(AgentsStore, SeesOneMeetingAfterAnother) {
  const AgentStore agent;
  for (int i = 0; i < 2; ++i) {
    {
      std::vector<std::jthread> ranks;
      for (const int rank : {2, 1, 0}) ranks.push_back(start_rank(agent, rank, 3));
    }
    EXPECT_TRUE(agent.is_empty());
  }
}

// Torchrun starts ranks anew when one has failed before it met the others.
TEST(AgentsStore, SeesAMeetingAfterOneThatFailed) {
  const AgentStore agent;
  EXPECT_THAT(message_of<Error>([&] { (void)meet_over_sockets(agent.launch_of(0, 2), 300ms); }),
              HasSubstr("waited in vain for 1 other rank"));
  ASSERT_FALSE(agent.is_empty());
  const auto left = agent.invitation();
  const auto stale_place = listen_anywhere(left.port);
  const auto late = start_rank(agent, 1, 2);
  FileDescriptor stranger;
  for (int i = 0; i < 2; ++i)  // ends the first connection and says nothing to the second
    ASSERT_TRUE(wait_until([&] { return (stranger = accept_waiting(stale_place)).is_open(); }))
        << "rank 1 should find what is left in the store of the earlier meeting";
  const auto first = start_rank(agent, 0, 2);
}

TEST(AgentsStore, ThatEndsIsNotARankThatIsLate) {
  auto agent = std::make_unique<AgentStore>();
  const auto launch = agent->launch_of(1, 2);
  Meeting meeting(launch, 20s);
  agent.reset();
  const auto sentence = message_of<Error>([&] { (void)meeting.ask("nothing", 0); });
  EXPECT_THAT(sentence, HasSubstr("the store where they meet has failed: "));
  EXPECT_THAT(sentence, testing::Not(HasSubstr("\n")));
}

// Strangers connect and say nothing. If rank 0 waited for them, ranks that are through would lose
// it.
TEST(AgentsStore, IsWhereSilentStrangersDelayNobody) {
  const AgentStore agent;
  const auto began = std::chrono::steady_clock::now();
  std::vector<FileDescriptor> strangers;
  {
    std::vector<std::jthread> ranks;
    ranks.push_back(start_rank(agent, 0, 3, 1s));
    for (int i = 0; i < 3; ++i)
      strangers.push_back(connect_to("127.0.0.1", agent.invitation().port));
    for (const int rank : {2, 1}) ranks.push_back(start_rank(agent, rank, 3, 1s));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 8s);
}

std::atomic<int> num_signals = 0;

// Rank 0 waits for rank 1 when most of the signals come.
TEST(AgentsStore, IsNotLeftOnASignal) {
  struct sigaction act {};
  struct sigaction before {};
  act.sa_handler = [](int) { ++num_signals; };
  ASSERT_EQ(::sigaction(SIGUSR1, &act, &before), 0);
  {
    const AgentStore agent;
    auto first = start_rank(agent, 0, 2);
    (void)agent.invitation();
    num_signals = 0;
    for (int sent = 1; sent <= 10; ++sent) {
      ::pthread_kill(first.native_handle(), SIGUSR1);
      ASSERT_TRUE(wait_until([&] { return num_signals == sent; }, 5s)) << "rank 0 has ended";
    }
    const auto second = start_rank(agent, 1, 2);
  }
  ::sigaction(SIGUSR1, &before, nullptr);
}

// Rank 0 of three meets whoever comes; the test comes in the others' place.
class Greetings : public testing::Test {
 protected:
  Greetings()
      : first_(std::async(std::launch::async,
                          [this] { return meet_over_sockets(agent_.launch_of(0, 3), 10s); })) {}

  // A connection to rank 0 whose first words are these.
  FileDescriptor greet(const Handshake& handshake) {
    auto socket = connect_to("127.0.0.1", agent_.invitation().port);
    send_handshake(socket, handshake);
    return socket;
  }
  FileDescriptor greet(std::uint64_t token, int rank) {
    return greet({.rank = rank, .token = token});
  }
  std::uint64_t token() { return agent_.invitation().token; }
  // Whether rank 0 ended this connection, or does so within a while.
  static bool was_sent_away(const FileDescriptor& socket) {
    pollfd wait{.fd = socket.get(), .events = POLLIN, .revents = 0};
    char byte;
    return ::poll(&wait, 1, 1000) == 1 && ::recv(socket.get(), &byte, 1, 0) <= 0;
  }
  // Whether rank 0 takes them for those that it waits for.
  void expect_to_be_met(const FileDescriptor& one, const FileDescriptor& two, std::uint64_t token) {
    send_handshake(one, {.rank = 1, .token = token});
    send_handshake(two, {.rank = 2, .token = token});
    EXPECT_TRUE(met()->poll(10ms).lost.empty());
  }
  std::unique_ptr<Wire> met() { return first_.get(); }

 private:
  AgentStore agent_;
  std::future<std::unique_ptr<Wire>> first_;
};

TEST_F(Greetings, OfAStrangerAreRefused) {
  const auto known = token();
  const auto stranger = greet(known + 1, 1);
  EXPECT_TRUE(was_sent_away(stranger));
  const auto one = greet(known, 1), two = greet(known, 2);
  expect_to_be_met(one, two, known);
}

TEST_F(Greetings, OfARankThatHasComeAreRefused) {
  const auto known = token();
  const auto one = greet(known, 1);
  Handshake answer;
  ASSERT_EQ(::recv(one.get(), &answer, sizeof answer, MSG_WAITALL), ssize_t(sizeof answer));
  EXPECT_TRUE(was_sent_away(greet(known, 1)));
  const auto two = greet(known, 2);
  expect_to_be_met(one, two, known);
}

TEST_F(Greetings, OfRanksThatDoNotExistAreRefused) {
  const auto known = token();
  for (const int rank : {-1, 0, 3}) EXPECT_TRUE(was_sent_away(greet(known, rank))) << rank;
  const auto one = greet(known, 1), two = greet(known, 2);
  expect_to_be_met(one, two, known);
}

TEST_F(Greetings, OfAnotherVersionAreNamed) {
  const auto two = greet({.version = kWireVersion + 1, .rank = 2, .token = token()});
  EXPECT_EQ(message_of<Error>([&] { (void)met(); }),
            "rank 2 has version 2 of what ranks send each other, and rank 0 has version 1: all "
            "should run the same Braid");
  Handshake answer;
  EXPECT_EQ(::recv(two.get(), &answer, sizeof answer, MSG_WAITALL), ssize_t(sizeof answer));
  EXPECT_EQ(answer.version, kWireVersion) << "so that rank 2 can name it, too";
}

TEST_F(Greetings, OfARankThatEndsBeforeAllHaveMetNameIt) {
  const auto known = token();
  const auto one = greet(known, 1);
  (void)greet(known, 2);
  EXPECT_EQ(message_of<Error>([&] { (void)met(); }), "rank 2 ended before all ranks had met");
}

}  // namespace braid::handshake_test
