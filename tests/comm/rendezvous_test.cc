// Processes that know one address find each other; here they are threads.
#include "comm/process/rendezvous.h"

#include <ATen/ATen.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "comm/process/sockets.h"
#include "comm/worlds.h"
#include "message_of.h"

static std::atomic<const char*> second_address = nullptr;

// Stands for the C library's: each host has that address, too. glibc frees a list's entries one by
// one, so that two lists may be joined.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const int failure = real(host, port, hints, found);
  const char* const more = second_address;
  if (failure != 0 || !more) return failure;
  while (*found) found = &(*found)->ai_next;
  return real(more, port, hints, found);
}

namespace braid::rendezvous_test {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

Launch launch_of(int rank, int size, int port) {
  return {.launcher = "torchrun", .rank = rank, .size = size, .host = "127.0.0.1", .port = port};
}

int free_port() { return listen_anywhere().port; }

TEST(Rendezvous, ConnectsAllRanks) {
  static constexpr int kSize = 4;
  const int port = free_port();
  std::vector<std::jthread> ranks;
  for (int r = 0; r < kSize; ++r)
    ranks.emplace_back([=] {
      ProcessWorld world(meet_over_sockets(launch_of(r, kSize, port), 20s), 10s);
      world.run([](const Group& group) {
        const auto mine = at::full({1}, group.rank(), at::kLong);
        EXPECT_TRUE(at::equal(group.all_gather(mine, 0), at::arange(kSize)));
      });
      EXPECT_EQ(world.has_first_rank(), r == 0);
      EXPECT_EQ(world.ranks_on_these_cores(), kSize);
    });
}

TEST(Rendezvous, NamesTheRankThatDidNotCome) {
  const int port = free_port();
  std::mutex mutex;
  std::vector<std::string> seen;
  {
    std::vector<std::jthread> ranks;
    for (const int r : {0, 2})
      ranks.emplace_back([&, r] {
        try {
          (void)meet_over_sockets(launch_of(r, 3, port), 1s);
        } catch (const Error& e) {
          const std::scoped_lock lock(mutex);
          seen.emplace_back(e.what());
        }
      });
  }
  ASSERT_EQ(seen.size(), 2u);
  for (const auto& sentence : seen)
    EXPECT_THAT(sentence, AnyOf(HasSubstr("rank 1 of 3 did not come"),
                                HasSubstr("waited in vain for 1 other rank"),
                                HasSubstr("waited in vain for 2 other rank")));
}

TEST(Rendezvous, NamesTheAddressWhereNobodyAnswers) {
  try {
    (void)meet_over_sockets(launch_of(1, 2, free_port()), 300ms);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("rank 1 of torchrun cannot meet the others at 127.0.0.1"));
  }
}

std::string failure_to_meet(Launch launch, std::chrono::milliseconds patience) {
  launch.size_variable = "WORLD_SIZE";
  launch.host_variable = "MASTER_ADDR";
  return message_of<Error>([&] { (void)meet_over_sockets(launch, patience); });
}

TEST(Rendezvous, NamesAHostThatDoesNotExist) {
  for (const int rank : {0, 1}) {
    auto launch = launch_of(rank, 2, free_port());
    launch.host = "no-such-host.invalid";
    const auto sentence = failure_to_meet(launch, 20s);
    EXPECT_THAT(sentence, HasSubstr("cannot find the host no-such-host.invalid"));
    EXPECT_THAT(sentence, HasSubstr("which MASTER_ADDR names"));
    EXPECT_THAT(sentence, HasSubstr("BRAID_LAUNCHER=none"));
  }
}

// The address is one of those kept for documentation, and routed nowhere.
TEST(Rendezvous, NamesAnAddressThatIsNotTheFirstRanks) {
  auto launch = launch_of(0, 2, free_port());
  launch.host = "192.0.2.1";
  const auto began = std::chrono::steady_clock::now();
  testing::internal::CaptureStderr();
  const auto sentence = failure_to_meet(launch, 60s);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
  EXPECT_THAT(sentence, HasSubstr("MASTER_ADDR should name the host of the first rank"));
  EXPECT_THAT(sentence, HasSubstr("192.0.2.1"));
  EXPECT_THAT(sentence, Not(HasSubstr("WORLD_SIZE")));
}

TEST(Rendezvous, NamesThePortThatAnotherProgramHas) {
  const auto stranger = listen_anywhere();
  testing::internal::CaptureStderr();
  const auto sentence = failure_to_meet(launch_of(0, 2, stranger.port), 20s);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(sentence, HasSubstr("Address already in use; another program may have this port"));
  EXPECT_THAT(sentence, HasSubstr("MASTER_PORT"));
}

// A program that takes connections and says nothing.
TEST(Rendezvous, DoesNotWaitForASilentStranger) {
  const auto stranger = listen_anywhere();
  const auto began = std::chrono::steady_clock::now();
  const auto sentence = failure_to_meet(launch_of(1, 2, stranger.port), 500ms);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 15s);
  EXPECT_THAT(sentence, HasSubstr("does not answer like a first rank"));
  EXPECT_THAT(sentence, HasSubstr("MASTER_PORT"));
  EXPECT_THAT(sentence, HasSubstr("BRAID_LAUNCHER=none"));
}

TEST(Rendezvous, SaysWhatALonelyRankWaitsFor) {
  auto launch = launch_of(0, 2, free_port());
  launch.size_variable = "WORLD_SIZE";
  std::string said;
  const auto failure = message_of<Error>([&] {
    (void)meet_over_sockets(launch, 600ms, [&](const std::string& sentence) { said = sentence; });
  });
  for (const auto& sentence : {said, failure}) {
    EXPECT_THAT(sentence, HasSubstr("WORLD_SIZE"));
    EXPECT_THAT(sentence, HasSubstr("BRAID_LAUNCHER=none"));
  }
}

TEST(Rendezvous, ThrowsWhatAWarningThrows) {
  const int port = free_port();
  std::promise<void> warned;
  std::jthread late([&, is_warned = warned.get_future()]() mutable {
    is_warned.wait();
    EXPECT_EQ(meet_over_sockets(launch_of(1, 2, port), 20s)->size(), 2);
  });
  const auto warn = [&](const std::string&) {
    warned.set_value();
    throw Error("nobody reads this");
  };
  EXPECT_EQ(message_of<Error>([&] { (void)meet_over_sockets(launch_of(0, 2, port), 3s, warn); }),
            "nobody reads this");
}

TEST(Rendezvous, MeetsAtAddressesOfIpv6) {
  const int port = free_port();
  std::vector<std::jthread> ranks;
  for (int r = 0; r < 2; ++r)
    ranks.emplace_back([=] {
      auto launch = launch_of(r, 2, port);
      launch.host = "::1";
      try {
        check_host("::1");
        EXPECT_EQ(meet_over_sockets(launch, 20s)->size(), 2);
      } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("::1")) << "a machine without IPv6";
      }
    });
}

TEST(Sockets, SayWhichAddressesAreForThisHostOnly) {
  EXPECT_TRUE(is_loopback("127.0.1.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("10.0.0.1"));
  EXPECT_EQ(addresses_towards("127.0.0.1").front(), "127.0.0.1");
  EXPECT_THROW(addresses_towards("no-such-host.invalid"), Error);
}

// Connections wait where a listener has as many as it takes. One of a host's two addresses must not
// take the patience of both.
TEST(Sockets, WaitForAllAddressesOfAHostTogether) {
  constexpr auto kPatience = 600ms;
  second_address = "127.0.0.2";
  const auto listener = listen_anywhere();
  ASSERT_EQ(::listen(listener.socket.get(), 0), 0);
  std::vector<FileDescriptor> waiting;
  std::string failure;
  std::chrono::steady_clock::duration took{};
  while (failure.empty() && waiting.size() < 16) {
    const auto began = std::chrono::steady_clock::now();
    failure = message_of<Error>(
        [&] { waiting.push_back(connect_to("127.0.0.1", listener.port, kPatience)); });
    took = std::chrono::steady_clock::now() - began;
  }
  second_address = nullptr;
  EXPECT_THAT(failure, HasSubstr("it does not answer"));
  EXPECT_GE(took, kPatience / 2);
  EXPECT_LT(took, 2 * kPatience - 50ms);
}

// Signals stand for a process that is stopped and goes on, which interrupts the same calls.
TEST(Sockets, WaitThroughSignals) {
  const auto listener = listen_anywhere();
  ASSERT_EQ(::listen(listener.socket.get(), 0), 0);
  std::vector<FileDescriptor> waiting;
  const auto connect = [&](std::chrono::milliseconds patience) {
    return message_of<Error>(
        [&] { waiting.push_back(connect_to("127.0.0.1", listener.port, patience)); });
  };
  while (connect(100ms).empty()) ASSERT_LT(waiting.size(), 16);
  struct sigaction act = {}, before = {};
  act.sa_handler = [](int) {};
  ::sigaction(SIGUSR1, &act, &before);
  std::atomic<bool> has_ended = false;
  std::string failure;
  std::jthread caller([&] {
    failure = connect(400ms);
    has_ended = true;
  });
  for (; !has_ended; std::this_thread::sleep_for(10ms))
    ::pthread_kill(caller.native_handle(), SIGUSR1);
  caller.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_THAT(failure, HasSubstr("it does not answer"));
}

// A process that dies says nothing, but its connections end.
TEST(SocketWorld, NoticesARankThatVanishes) {
  auto sockets = connected(2);
  std::exception_ptr seen;
  std::jthread survivor([&] {
    try {
      ProcessWorld(std::make_unique<SocketWire>(0, std::move(sockets[0])), 10s)
          .run([](const Group& world) {
            world.barrier();
            world.await();
          });
    } catch (...) {
      seen = std::current_exception();
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  pollfd first_words{.fd = sockets[1][0].get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&first_words, 1, 10'000), 1) << "it waits for the answer";
  sockets[1][0] = FileDescriptor();
  survivor.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_EQ(message_of(seen), "rank 1 failed: its process has ended");
}

// A suspended process keeps its connections and says nothing.
TEST(SocketWorld, NoticesARankThatFallsSilentEvenInAnEndlessWait) {
  auto sockets = connected(2);
  std::string seen;
  try {
    ProcessWorld(std::make_unique<SocketWire>(0, std::move(sockets[0])), 300ms)
        .run([](const Group& world) { world.await(); });
  } catch (const std::exception& e) {
    seen = e.what();
  }
  EXPECT_THAT(seen, AnyOf(HasSubstr("rank 1 failed: it has not answered for 0.3 s"),
                          HasSubstr("waited 0.3 s for rank 1")));
}

TEST(SlowSocketWorld, MovesTensorsLargerThanAnySocketBuffer) {
  run_over(Over::kSockets, {.size = 2}, [](const Group& world) {
    const auto x = at::arange(5'000'000).to(at::kFloat) + world.rank();
    const auto incoming = world.ring_shift(x);
    EXPECT_TRUE(
        at::equal(incoming->wait(), at::arange(5'000'000).to(at::kFloat) + 1 - world.rank()));
    EXPECT_TRUE(at::equal(world.all_reduce(x), 2 * at::arange(5'000'000).to(at::kFloat) + 1));
  });
}

// Ranks say goodbye in any order; nobody waits for a goodbye said before it listened.
TEST(SocketWorld, EndsAtOnce) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) run_over(Over::kSockets, {.size = 4}, [](const Group&) {});
  EXPECT_LT(std::chrono::steady_clock::now() - began, 9s);  // one missed goodbye takes 10 s
}

}  // namespace braid::rendezvous_test
