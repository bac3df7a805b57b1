// How the ranks of a world fare: the first failure of the run they are in, a loss that ends the
// world, and how long to wait.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "base/error.h"

namespace braid {

// How often a rank that waits looks for a failure: a failed rank need not know who waits for it.
constexpr auto kGlance = std::chrono::milliseconds(5);

// Thrown on the ranks that are well when another one is not. Its message holds the first cause.
class PeerFailed : public Error {
 public:
  using Error::Error;
};

// Likewise, where what the other one was given is not usable.
class PeerRefused : public PeerFailed {
 public:
  using PeerFailed::PeerFailed;
};

// What a world does not recover from: a rank that is gone or does not come, a broken link. Any
// other failure ends the run it happens in.
class WorldLost : public Error {
 public:
  using Error::Error;
};

// Thrown by every rank of a world at the same place: they agreed to stop and can go on later.
class AgreedStop : public Cancelled {
 public:
  using Cancelled::Cancelled;
};

class Fate {
 public:
  explicit Fate(std::chrono::milliseconds deadline = std::chrono::seconds(10))
      : deadline_(deadline) {}

  // Of a run only the first failure is kept: what comes later follows from it. A loss stays.
  void fail(int rank, std::exception_ptr cause);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  bool is_lost() const { return lost_.load(std::memory_order_acquire); }
  // Throws PeerFailed if a rank has failed, and Cancelled if the run should stop.
  void check() const;
  std::exception_ptr cause() const;
  int culprit() const;  // the rank of the first failure
  struct Failure {
    int rank;
    std::exception_ptr cause;
  };
  Failure loss() const;  // where the world is lost

  // Before a run, which `stop` may end. Throws PeerFailed when the world is lost.
  void begin(std::stop_token stop);
  // When all ranks have left a run that failed: another epoch begins.
  void recover();
  // How many failed runs the world has recovered from. What ranks had begun together in an older
  // epoch is void.
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

  std::chrono::milliseconds deadline() const { return deadline_; }

 private:
  std::chrono::milliseconds deadline_;
  std::stop_token stop_;
  std::atomic<bool> failed_ = false, lost_ = false;
  std::atomic<std::uint64_t> epoch_ = 0;
  mutable std::mutex mutex_;
  std::optional<Failure> first_, loss_;
};

bool is_loss(const std::exception_ptr& failure);
// The message of an exception, whatever it is.
std::string message_of(const std::exception_ptr& failure);

}  // namespace braid
