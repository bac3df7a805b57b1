#include "comm/fate.h"

namespace braid {

void Fate::fail(int rank, std::exception_ptr cause) {
  const std::scoped_lock lock(mutex_);
  if (cause_) return;
  rank_ = rank;
  cause_ = std::move(cause);
  failed_.store(true, std::memory_order_release);
}

void Fate::check() const {
  if (!failed()) return;
  const std::scoped_lock lock(mutex_);
  throw PeerFailed(text_of("rank ", rank_, " failed: ", message_of(cause_)));
}

std::exception_ptr Fate::cause() const {
  const std::scoped_lock lock(mutex_);
  return cause_;
}

int Fate::culprit() const {
  const std::scoped_lock lock(mutex_);
  return rank_;
}

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace braid
