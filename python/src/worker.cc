#include "worker.h"

namespace nb = nanobind;

namespace braid::python {

Worker::Worker() : thread_([this](const std::stop_token& stop) { serve(stop); }) {}

Worker::~Worker() {
  const nb::gil_scoped_release released;
  thread_.request_stop();
  thread_.join();
}

void Worker::serve(const std::stop_token& stop) {
  for (;;) {
    std::unique_lock lock(mutex_);
    if (!given_.wait(lock, stop, [&] { return !tasks_.empty(); })) return;
    const auto task = tasks_.front();
    tasks_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*task.work)();
    } catch (...) {
      failure = std::current_exception();
    }
    task.caller->finish(failure);
  }
}

void Worker::run(Caller& caller, const std::function<void()>& work) {
  {
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(mutex_);
    tasks_.push_back({.caller = &caller, .work = &work});
    given_.notify_one();
  }
  caller.wait();
}

}  // namespace braid::python
