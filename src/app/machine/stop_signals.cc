#include "app/machine/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "app/print/failure.h"
#include "base/error.h"

namespace braid {
namespace {

constexpr auto kLongestWrite = std::chrono::seconds(5);

sigset_t block_stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);  // nohup ignores SIGHUP, for example
  }
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

int checked(int fd) {
  check(fd >= 0, "cannot wait for signals: ", std::strerror(errno));
  return fd;
}

// The next signal's number; 0 after `timeout_ms` without one (-1: no limit), or if the end came.
int next_signal(int signals, int ended, int timeout_ms) {
  pollfd fds[] = {{.fd = signals, .events = POLLIN, .revents = 0},
                  {.fd = ended, .events = POLLIN, .revents = 0}};
  while (::poll(fds, 2, timeout_ms) < 0 && errno == EINTR) {
  }
  signalfd_siginfo info{};
  const bool is_signal = (fds[0].revents & POLLIN) && !(fds[1].revents & POLLIN) &&
                         ::read(signals, &info, sizeof info) == sizeof info;
  return is_signal ? int(info.ssi_signo) : 0;
}

bool has_ended(int ended) {
  pollfd fd{.fd = ended, .events = POLLIN, .revents = 0};
  return ::poll(&fd, 1, 0) > 0;
}

}  // namespace

StopSignals::StopSignals(std::chrono::milliseconds grace) {
  const auto set = block_stop_signals();
  signals_ = checked(::signalfd(-1, &set, SFD_CLOEXEC));
  ended_ = checked(::eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread([this, grace] { wait(grace); });
}

StopSignals::~StopSignals() {
  (void)::eventfd_write(ended_, 1);
  thread_.join();
  ::close(signals_);
  ::close(ended_);
}

void StopSignals::wait(std::chrono::milliseconds grace) {
  const int first = next_signal(signals_, ended_, -1);
  if (first == 0) return;
  received_ = first;
  // On a thread of its own: what hears of the stop may hang, the second signal and the end may not.
  std::thread asking([this] { stop_.request_stop(); });
  const int second = next_signal(signals_, ended_, int(grace.count()));
  if (second == 0 && has_ended(ended_)) return asking.join();
  const std::unique_lock lock(writing_, kLongestWrite);
  // Not exit(): another thread is still working, and destructors would destroy what it uses.
  ::_exit(kSignalled + first);
}

}  // namespace braid
