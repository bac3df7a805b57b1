// Few descriptors: connections leave some for files, and resting ones give theirs to new ones.
#include "serve/http/descriptors.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "test_server.h"
#include "wait_until.h"

namespace braid::serve::descriptors_test {

using testing::HasSubstr;

// Restores the limit at the end.
class Limit {
 public:
  Limit() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  void set(rlim_t most) const {
    const rlimit limit{.rlim_cur = most, .rlim_max = before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t now() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }
  rlim_t most() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

TEST(Descriptors, AreLeftToFiles) {
  EXPECT_EQ(connections_within(1'000'000, 2048), 2048);
  EXPECT_EQ(connections_within(RLIM_INFINITY, 2048), 2048);
  EXPECT_EQ(connections_within(1024, 2048), 896);
  EXPECT_EQ(connections_within(256, 2048), 128);
  EXPECT_EQ(connections_within(64, 2048), 16);
  EXPECT_EQ(connections_within(1024, 3), 3);
}

TEST(Descriptors, AreAskedForUpToWhatTheSystemAllows) {
  const Limit limit;
  limit.set(256);
  EXPECT_EQ(room_for_connections(8),
            limit.most() >= 1032 ? 8 : connections_within(limit.most(), 8));
  EXPECT_EQ(Limit::now(), std::min<rlim_t>(limit.most(), 1032)) << "and no further";
  limit.set(std::min<rlim_t>(limit.most(), 2000));
  (void)room_for_connections(8);
  EXPECT_EQ(Limit::now(), std::min<rlim_t>(limit.most(), 2000)) << "it is never lowered";
}

// Takes all descriptors but one while it lives.
class OneFreeDescriptor {
 public:
  OneFreeDescriptor() {
    for (int fd = 0; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) fds_.push_back(fd);
    EXPECT_EQ(errno, EMFILE);
    ::close(fds_.back());
    fds_.pop_back();
  }
  OneFreeDescriptor(const OneFreeDescriptor&) = delete;
  OneFreeDescriptor& operator=(const OneFreeDescriptor&) = delete;
  ~OneFreeDescriptor() {
    for (const int fd : fds_) ::close(fd);
  }

 private:
  std::vector<int> fds_;
};

// A sanitizer that checks the types of objects opens a pipe to see whether memory is there.
bool is_sanitized() { return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr; }

// One descriptor is free: the client takes it, and the server has none for its own end.
TEST(Descriptors, OfRestingConnectionsGoToNewOnes) {
  if (is_sanitized()) GTEST_SKIP() << "the sanitizer needs descriptors, too";
  FakeEngine engine;
  std::mutex mutex;
  std::vector<std::string> warnings;
  const Limit limit;
  const Server server(engine, {}, {.on_warning = [&](const std::string& sentence) {
                        const std::scoped_lock lock(mutex);
                        warnings.push_back(sentence);
                      }});
  const auto ask = [](RawClient& client) {
    client.forget();
    client.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
    return client.read_until("\r\n\r\n");
  };
  RawClient longest(server.port()), silent(server.port()), shortest(server.port());
  for (auto* const client : {&longest, &shortest}) ASSERT_TRUE(ask(*client));
  limit.set(100);
  for (const int left : {2, 1}) {
    const OneFreeDescriptor taken;
    {
      RawClient another(server.port());
      EXPECT_TRUE(ask(another));
    }
    EXPECT_TRUE(wait_until([&] { return server.http().num_connections() <= left; }));
  }
  EXPECT_TRUE(ask(shortest)) << "two rested longer";
  const std::scoped_lock lock(mutex);
  ASSERT_EQ(warnings.size(), 1u) << "it is told once";
  EXPECT_THAT(warnings.front(), HasSubstr("Too many open files"));
}

}  // namespace braid::serve::descriptors_test
