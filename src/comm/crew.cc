#include "comm/crew.h"

namespace braid {

Crew::~Crew() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Crew::serve(int number) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_ending_ || round_ != seen; });
    if (is_ending_) return;
    seen = round_;
    if (number >= size_) continue;
    const auto& work = *work_;
    lock.unlock();
    work(number);
    lock.lock();
    if (--open_ == 0) changed_.notify_all();
  }
}

void Crew::run(int size, const std::function<void(int)>& work) {
  for (int number = int(threads_.size()) + 1; number < size; ++number)
    threads_.emplace_back([this, number] { serve(number); });
  {
    const std::scoped_lock lock(mutex_);
    work_ = &work;
    size_ = size;
    open_ = size - 1;
    ++round_;
  }
  changed_.notify_all();
  work(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return open_ == 0; });
}

}  // namespace braid
