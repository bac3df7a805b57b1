// Ranks meet at a store that may outlive them, and tell each other from strangers.
#include "comm/process/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <future>
#include <sstream>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "comm/process/meeting.h"
#include "comm/process/rendezvous.h"
#include "comm/worlds.h"
#include "message_of.h"

namespace braid::handshake_test {

using testing::HasSubstr;
using namespace std::chrono_literals;

Launch launch_of(int rank, int size, int port) {
  return {.launcher = "torchrun", .rank = rank, .size = size, .host = "127.0.0.1", .port = port};
}

// What rank 0 says in the store at `port`.
struct Invitation {
  std::uint64_t token = 0;
  int port = 0;
};
Invitation invitation_at(int port) {
  c10d::TCPStoreOptions options;
  options.port = std::uint16_t(port);
  const auto bytes =
      c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options)->get("braid/meeting");
  Invitation said;
  std::istringstream(std::string(bytes.begin(), bytes.end())) >> said.token >> said.port;
  return said;
}

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
    auto launch = handshake_test::launch_of(rank, size, store_->getPort());
    launch.has_server = true;
    return launch;
  }
  int port() const { return store_->getPort(); }
  bool is_empty() const { return num_keys() == empty_; }

 private:
  std::int64_t num_keys() const { return store_->getNumKeys(); }

  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::int64_t empty_ = 0;
};

// The last rank comes first: it finds what is left in the store of an earlier meeting.
void expect_to_meet(const AgentStore& agent, int size) {
  std::vector<std::jthread> ranks;
  for (int r = size - 1; r >= 0; --r) {
    ranks.emplace_back([&agent, r, size] {
      try {
        ProcessWorld world(meet_over_sockets(agent.launch_of(r, size), 10s), 10s);
        world.run([](const Group& group) { group.barrier(); });
      } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << r << ": " << e.what();
      }
    });
    std::this_thread::sleep_for(200ms);
  }
}

TEST(AgentsStore, SeesOneMeetingAfterAnother) {
  const AgentStore agent;
  for (int i = 0; i < 2; ++i) {
    expect_to_meet(agent, 3);
    EXPECT_TRUE(agent.is_empty());
  }
}

// As when torchrun starts ranks anew because one failed before it met the others.
TEST(AgentsStore, SeesAMeetingAfterOneThatFailed) {
  const AgentStore agent;
  EXPECT_THAT(message_of<Error>([&] { (void)meet_over_sockets(agent.launch_of(0, 2), 300ms); }),
              HasSubstr("waited in vain for 1 other rank"));
  EXPECT_FALSE(agent.is_empty());
  expect_to_meet(agent, 2);
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

// Connections that say nothing. Ranks that are through would lose one that waits for them.
TEST(AgentsStore, IsWhereSilentStrangersDelayNobody) {
  const AgentStore agent;
  constexpr auto kDeadline = 1s;
  const auto began = std::chrono::steady_clock::now();
  std::vector<FileDescriptor> strangers;
  {
    std::vector<std::jthread> ranks;
    const auto start = [&](int rank) {
      ranks.emplace_back([&, rank] {
        try {
          ProcessWorld world(meet_over_sockets(agent.launch_of(rank, 3), 20s), kDeadline);
          world.run([](const Group& group) { group.barrier(); });
        } catch (const std::exception& e) {
          ADD_FAILURE() << "rank " << rank << ": " << e.what();
        }
      });
    };
    start(0);
    for (int i = 0; i < 3; ++i)
      strangers.push_back(connect_to("127.0.0.1", invitation_at(agent.port()).port));
    for (const int rank : {2, 1}) {
      std::this_thread::sleep_for(kDeadline + 200ms);
      start(rank);
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 8s);
}

TEST(AgentsStore, IsNotLeftOnASignal) {
  struct sigaction act {};
  struct sigaction before {};
  act.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &act, &before), 0);
  {
    const AgentStore agent;
    std::vector<std::jthread> ranks;
    for (int r = 0; r < 2; ++r) {
      ranks.emplace_back(
          [&agent, r] { EXPECT_EQ(meet_over_sockets(agent.launch_of(r, 2), 10s)->size(), 2); });
      if (r > 0) continue;
      (void)invitation_at(agent.port());
      std::this_thread::sleep_for(50ms);
      ::pthread_kill(ranks.front().native_handle(), SIGUSR1);
      std::this_thread::sleep_for(50ms);
    }
  }
  ::sigaction(SIGUSR1, &before, nullptr);
}

// Rank 0 of three meets whoever comes; the test comes in the others' place.
class Greetings : public testing::Test {
 protected:
  Greetings()
      : first_(std::async(std::launch::async,
                          [this] { return meet_over_sockets(launch_of(0, 3, port_), 10s); })) {}

  // A connection to rank 0 whose first words are these.
  FileDescriptor greet(const Handshake& handshake) {
    auto socket = connect_to("127.0.0.1", invitation_at(port_).port);
    send_handshake(socket, handshake);
    return socket;
  }
  FileDescriptor greet(std::uint64_t token, int rank) {
    return greet({.rank = rank, .token = token});
  }
  std::uint64_t token() { return invitation_at(port_).token; }
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
  int port_ = listen_anywhere().port;
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
  std::this_thread::sleep_for(100ms);
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
