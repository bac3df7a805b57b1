#include "worker.h"

#include <unistd.h>

#include <algorithm>

#include "braid/braid.h"

namespace nb = nanobind;

namespace braid::python {

Worker::Worker()
    : process_(::getpid()), thread_([this](const std::stop_token& stop) { serve(stop); }) {}

Worker::~Worker() {
  const nb::gil_scoped_release released;
  thread_.request_stop();
  thread_.join();
}

bool Worker::is_here() const { return process_ == ::getpid(); }

void Worker::serve(const std::stop_token& stop) {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (!given_.wait(lock, stop, [&] { return !tasks_.empty(); })) return;
    const auto task = tasks_.front();
    tasks_.pop_front();
    running_ = task.caller;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*task.work)();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    running_ = nullptr;
    lock.unlock();
    task.caller->finish(failure);
  }
}

// Only with mutex_.
bool Worker::has_work_of(std::thread::id thread) const {
  const auto is_of_it = [&](const Task& task) { return task.caller->thread() == thread; };
  return (running_ && running_->thread() == thread) || std::ranges::any_of(tasks_, is_of_it);
}

bool Worker::withdraw(const Caller& caller) {
  const std::scoped_lock lock(mutex_);
  return std::erase_if(tasks_, [&](const Task& task) { return task.caller == &caller; }) > 0;
}

void Worker::run(Caller& caller, const std::function<void()>& work) {
  if (!is_here())
    throw Error(
        "this model was loaded before fork(): load it in the child, or start processes with spawn");
  check_calls_may_begin();
  {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(mutex_);
    if (has_work_of(caller.thread()))
      throw Error("a callback of this pipeline cannot call it: it is drawing");
    tasks_.push_back({.caller = &caller, .work = &work});
    given_.notify_one();
  }
  caller.wait([&] { return withdraw(caller); });
}

void Worker::run_to_the_end(const std::function<void()>& work) {
  Caller caller;
  {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(mutex_);
    tasks_.push_back({.caller = &caller, .work = &work});
    given_.notify_one();
  }
  caller.wait_to_the_end();
}

}  // namespace braid::python
