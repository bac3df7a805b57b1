#include "app/machine/stop_signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "app/machine/exit_codes.h"
#include "base/error.h"

namespace braid {
namespace {

constexpr auto kLongestWrite = std::chrono::seconds(5);

sigset_t block_signals(std::vector<int> signals) {
  signals.insert(signals.end(), {SIGINT, SIGTERM, SIGHUP});
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
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

// The next signal's number; 0 if none comes until then, or if the end came.
int next_signal(int signals, int ended, std::chrono::steady_clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      until - std::min(until, std::chrono::steady_clock::now()));
  const bool is_endless = until == std::chrono::steady_clock::time_point::max();
  const int timeout_ms = is_endless ? -1 : int(left.count());
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

const char* signal_name(int signal) {
  switch (signal) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
    default:
      return "";
  }
}

StopSignals::StopSignals(std::chrono::milliseconds grace, std::vector<int> ignored)
    : ignored_(std::move(ignored)) {
  const auto set = block_signals(ignored_);
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

std::shared_ptr<void> StopSignals::on_ignored(std::function<void(int signal)> heard) {
  const auto set = [this](std::function<void(int)> next) {
    const std::scoped_lock lock(hearing_);
    heard_ = std::move(next);
  };
  set(std::move(heard));
  return {nullptr, [set](void*) { set({}); }};
}

void StopSignals::tell_of_ignored(int signal) {
  const std::scoped_lock lock(hearing_);
  if (heard_) heard_(signal);
}

int StopSignals::next_to_stop(Clock::time_point until) {
  for (;;) {
    const int signal = next_signal(signals_, ended_, until);
    if (std::ranges::count(ignored_, signal) == 0) return signal;
    tell_of_ignored(signal);
  }
}

void StopSignals::wait(std::chrono::milliseconds grace) {
  const int first = next_to_stop(Clock::time_point::max());
  if (first == 0) return;
  received_ = first;
  // On a thread of its own: what hears of the stop may hang, the second signal and the end may not.
  std::thread asking([this] { stop_.request_stop(); });
  const int second = next_to_stop(Clock::now() + grace);
  if (second == 0 && has_ended(ended_)) return asking.join();
  const std::unique_lock lock(writing_, kLongestWrite);
  // Not exit(): another thread is still working, and destructors would destroy what it uses.
  ::_exit(kSignalled + first);
}

}  // namespace braid
