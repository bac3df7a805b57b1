// What the ranks of one run share: the first failure of any of them, and how long to wait.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"

namespace braid {

// Thrown on the ranks that are well when another one is not. Its message holds the first cause.
class PeerFailed : public Error {
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

  // Only the first failure is kept: what comes later follows from it.
  void fail(int rank, std::exception_ptr cause);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Throws PeerFailed if a rank has failed.
  void check() const;
  std::exception_ptr cause() const;
  int culprit() const;  // the rank of the first failure

  std::chrono::milliseconds deadline() const { return deadline_; }

 private:
  std::chrono::milliseconds deadline_;
  std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  int rank_ = -1;
  std::exception_ptr cause_;
};

// The message of an exception, whatever it is.
std::string message_of(const std::exception_ptr& failure);

}  // namespace braid
