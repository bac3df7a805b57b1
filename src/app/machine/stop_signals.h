// Ctrl-C and similar signals become a request to stop, and end the program if it is not heeded.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace braid {

const char* signal_name(int signal);  // "SIGTERM"; of those below, otherwise ""

// While it lives, SIGINT, SIGTERM and SIGHUP (if not ignored before) make `token()` request a stop,
// on a thread of its own. If the program has not ended after `grace`, or a second signal comes, it
// exits at once with 128 + the signal's number, whatever the token's callbacks do. Create it before
// other threads start: they inherit the blocked signals.
//
// Signals in `ignored`, SIGUSR1 for example, no longer end the program.
class StopSignals {
 public:
  explicit StopSignals(std::chrono::milliseconds grace = std::chrono::seconds(2),
                       std::vector<int> ignored = {});
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  std::stop_token token() const { return stop_.get_token(); }
  int received() const { return received_; }  // the first signal's number; 0: none

  // While the result lives, calls `heard` with the number of each ignored signal that comes, on the
  // thread of the signals.
  [[nodiscard]] std::shared_ptr<void> on_ignored(std::function<void(int signal)> heard);

  // Lets a file be written without being left half-done: an immediate exit waits for the lock, but
  // no longer than 5 s.
  [[nodiscard]] std::unique_lock<std::timed_mutex> delay_exit() {
    return std::unique_lock(writing_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void wait(std::chrono::milliseconds grace);
  int next_to_stop(Clock::time_point until);
  void tell_of_ignored(int signal);

  const std::vector<int> ignored_;
  std::mutex hearing_;
  std::function<void(int signal)> heard_;
  std::stop_source stop_;
  std::atomic<int> received_ = 0;
  std::timed_mutex writing_;
  int signals_, ended_;  // descriptors
  std::thread thread_;
};

}  // namespace braid
