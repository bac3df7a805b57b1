#include "weights/paging/work_queue.h"

#include <algorithm>

namespace braid {

WorkQueue::WorkQueue() : thread_([this] { run(); }) {}

WorkQueue::~WorkQueue() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkQueue::push(std::function<void()> work) {
  {
    const std::scoped_lock lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void WorkQueue::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !is_busy_; });
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !work_.empty(); });
    if (work_.empty()) return;
    const auto work = std::move(work_.front());
    work_.pop_front();
    is_busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    is_busy_ = false;
    changed_.notify_all();
  }
}

int HostEvents::make() {
  const std::scoped_lock lock(mutex_);
  times_.emplace_back();
  return int(times_.size()) - 1;
}

std::uint64_t HostEvents::record(int event) {
  const std::scoped_lock lock(mutex_);
  return ++times_[std::size_t(event)].recorded;
}

std::uint64_t HostEvents::recorded(int event) const {
  const std::scoped_lock lock(mutex_);
  return times_[std::size_t(event)].recorded;
}

void HostEvents::reach(int event, std::uint64_t time) {
  {
    const std::scoped_lock lock(mutex_);
    auto& reached = times_[std::size_t(event)].reached;
    reached = std::max(reached, time);
  }
  changed_.notify_all();
}

void HostEvents::await(int event, std::uint64_t time) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return times_[std::size_t(event)].reached >= time; });
}

}  // namespace braid
