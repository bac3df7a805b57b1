// The state of a world's ranks: the first failure of the current run, a loss that ends the world,
// and the deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/error.h"

namespace braid {

// How often a waiting rank checks for failures: a failed rank need not know who waits for it.
constexpr auto kGlance = std::chrono::milliseconds(5);

// Thrown on healthy ranks when another one fails. The message holds the first cause.
class PeerFailed : public Error {
 public:
  using Error::Error;
};

// Thrown when the other rank failed because its input is unusable.
class PeerRefused : public PeerFailed {
 public:
  using PeerFailed::PeerFailed;
};

// An unrecoverable failure: a rank is gone or does not come, or a link broke. Any other failure
// only ends the run it happens in.
class WorldLost : public Error {
 public:
  using Error::Error;
};

class Fate {
 public:
  using Clock = std::chrono::steady_clock;

  // `now` is the clock that the deadline is measured by; any thread may ask it.
  explicit Fate(std::chrono::milliseconds deadline = std::chrono::seconds(10),
                std::function<Clock::time_point()> now = Clock::now)
      : deadline_(deadline), now_(std::move(now)) {}

  // Only the first failure of a run is kept, as later ones follow from it. A loss is kept for good.
  void fail(int rank, std::exception_ptr cause);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  bool is_lost() const { return lost_.load(std::memory_order_acquire); }
  // Throws PeerFailed if a rank has failed, Cancelled if the run should stop.
  void check() const;
  std::exception_ptr cause() const;
  int culprit() const;  // the rank of the first failure
  struct Failure {
    int rank;
    std::exception_ptr cause;
  };
  Failure loss() const;  // only if the world is lost
  // Tells the loss, if there is one, as rank `speaker` should: its own in its own words.
  std::optional<std::string> loss_told_by(int speaker) const;

  // What a rank waits for.
  struct Awaited {
    std::function<bool()> has_come;
    std::function<std::string()> name;  // "rank 1"
    // Whether the wait has no deadline for now; one begins when this ends.
    std::function<bool()> is_endless = [] { return false; };
  };
  // Waits until `awaited` has come, of which `changed` tells. Throws as check() does, and WorldLost
  // past the deadline. `lock` is held whenever a function of `awaited` is called.
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
            const Awaited& awaited) const;

  // Call before each run; `stop` may end the run. Throws PeerFailed if the world is lost.
  void begin(std::stop_token stop);
  // Call when all ranks have left a failed run: a new epoch begins.
  void recover();
  // The number of failed runs the world has recovered from. Anything ranks began together in an
  // older epoch is void.
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

  std::chrono::milliseconds deadline() const { return deadline_; }
  Clock::time_point now() const { return now_(); }

 private:
  std::chrono::milliseconds deadline_;
  std::function<Clock::time_point()> now_;
  std::stop_token stop_;
  std::atomic<bool> failed_ = false, lost_ = false;
  std::atomic<std::uint64_t> epoch_ = 0;
  mutable std::mutex mutex_;
  std::optional<Failure> first_, loss_;
};

// For sentences: "0.4".
double in_seconds(std::chrono::milliseconds time);

bool is_loss(const std::exception_ptr& failure);
// The message of any exception.
std::string message_of(const std::exception_ptr& failure);

}  // namespace braid
