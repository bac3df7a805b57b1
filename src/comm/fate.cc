#include "comm/fate.h"

namespace braid {
namespace {

std::string sentence(int rank, const std::exception_ptr& cause) {
  return text_of("rank ", rank, " failed: ", message_of(cause));
}

}  // namespace

void Fate::fail(int rank, std::exception_ptr cause) {
  const std::scoped_lock lock(mutex_);
  const bool is_lost = is_loss(cause);
  if (is_lost && !loss_) loss_ = {rank, cause};
  if (!first_) first_ = {rank, std::move(cause)};
  if (is_lost) lost_.store(true, std::memory_order_release);
  failed_.store(true, std::memory_order_release);
}

void Fate::check() const {
  if (failed()) {
    const std::scoped_lock lock(mutex_);
    throw PeerFailed(sentence(first_->rank, first_->cause));
  }
  if (stop_.stop_requested()) throw Cancelled("stopped as asked");
}

std::exception_ptr Fate::cause() const {
  const std::scoped_lock lock(mutex_);
  return first_ ? first_->cause : nullptr;
}

int Fate::culprit() const {
  const std::scoped_lock lock(mutex_);
  return first_ ? first_->rank : -1;
}

Fate::Failure Fate::loss() const {
  const std::scoped_lock lock(mutex_);
  return *loss_;
}

std::optional<std::string> Fate::loss_told_by(int speaker) const {
  const std::scoped_lock lock(mutex_);
  if (!loss_) return {};
  return loss_->rank == speaker ? message_of(loss_->cause) : sentence(loss_->rank, loss_->cause);
}

void Fate::wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                const Awaited& awaited) const {
  auto end = now() + deadline();
  while (!changed.wait_for(lock, kGlance, awaited.has_come)) {
    check();
    if (awaited.is_endless()) end = now() + deadline();
    if (now() >= end)
      throw WorldLost(text_of("waited ", in_seconds(deadline()), " s for ", awaited.name()));
  }
}

void Fate::begin(std::stop_token stop) {
  const std::scoped_lock lock(mutex_);
  if (loss_) throw PeerFailed(sentence(loss_->rank, loss_->cause));
  stop_ = std::move(stop);
}

void Fate::recover() {
  const std::scoped_lock lock(mutex_);
  if (loss_) return;
  first_.reset();
  failed_.store(false, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_acq_rel);
}

double in_seconds(std::chrono::milliseconds time) { return double(time.count()) / 1000; }

bool is_loss(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const WorldLost&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace braid
