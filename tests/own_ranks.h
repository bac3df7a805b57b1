// Ranks as separate processes: copies of this test program, each running one test under the
// variables torchrun would set.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "comm/process/sockets.h"

namespace braid {

class OwnRanks {
 public:
  // `test` names a test that does nothing unless read_launch() finds these variables.
  OwnRanks(int size, const std::string& test) {
    const auto port = std::to_string(listen_anywhere().port);
    for (int rank = 0; rank < size; ++rank) start(rank, size, port, test);
  }
  OwnRanks(const OwnRanks&) = delete;
  OwnRanks& operator=(const OwnRanks&) = delete;
  ~OwnRanks() {
    for (auto& rank : ranks_) {
      if (rank.pid > 0) {
        ::kill(rank.pid, SIGKILL);
        ::waitpid(rank.pid, nullptr, 0);
      }
      ::close(rank.out);
    }
  }

  void send(int rank, int signal) const { ::kill(ranks_[std::size_t(rank)].pid, signal); }

  // Waits until the rank has printed `text`; false if it ends before.
  bool wait_for(int rank, const std::string& text) {
    auto& [pid, out, printed] = ranks_[std::size_t(rank)];
    while (printed.find(text) == std::string::npos)
      if (!read_some(ranks_[std::size_t(rank)])) return false;
    return true;
  }

  // Waits until the rank has sent itself SIGSTOP.
  void wait_for_stop(int rank) {
    int status = 0;
    ASSERT_GT(::waitpid(ranks_[std::size_t(rank)].pid, &status, WUNTRACED), 0);
    ASSERT_TRUE(WIFSTOPPED(status)) << "it has ended";
  }

  // Everything the rank printed until its end.
  std::string finish(int rank) {
    auto& process = ranks_[std::size_t(rank)];
    while (read_some(process)) {
    }
    ::waitpid(process.pid, nullptr, 0);
    process.pid = -1;
    return process.printed;
  }

 private:
  struct Process {
    pid_t pid;
    int out;
    std::string printed = {};
  };

  void start(int rank, int size, const std::string& port, const std::string& test) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    std::vector<std::string> environment = {"RANK=" + std::to_string(rank),
                                            "LOCAL_RANK=" + std::to_string(rank),
                                            "WORLD_SIZE=" + std::to_string(size),
                                            "MASTER_ADDR=127.0.0.1",
                                            "MASTER_PORT=" + port,
                                            "OMP_NUM_THREADS=1",
                                            "OMP_WAIT_POLICY=passive"};
    const auto filter = "--gtest_filter=" + test;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      for (auto& variable : environment) ::putenv(variable.data());
      ::execl("/proc/self/exe", "rank", filter.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    ranks_.push_back({pid, ends[0]});
  }

  static bool read_some(Process& process) {
    std::array<char, 4096> buffer{};
    const auto n = ::read(process.out, buffer.data(), buffer.size());
    if (n > 0) process.printed.append(buffer.data(), std::size_t(n));
    return n > 0;
  }

  std::vector<Process> ranks_;
};

}  // namespace braid
