#include "caller.h"

#include <chrono>

#include "braid/braid.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

constexpr auto kGlance = std::chrono::milliseconds(50);  // how long Ctrl-C may go unnoticed

}  // namespace

void Caller::call(const std::function<void()>& callback) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return asked_ == nullptr; });  // another thread's of the work
  if (has_raised_) throw CallbackRaised();
  asked_ = &callback;
  changed_.notify_all();
  changed_.wait(lock, [&] { return asked_ == nullptr; });
  if (has_raised_) throw CallbackRaised();
}

void Caller::finish(std::exception_ptr failure) {
  const std::scoped_lock lock(mutex_);
  failure_ = std::move(failure);
  is_finished_ = true;
  changed_.notify_all();  // within the lock: the waiting thread destroys this object
}

void Caller::answer(const std::function<void()>& callback) {
  try {
    callback();
  } catch (...) {
    if (!raised_) raised_ = std::current_exception();
  }
}

// A signal's handler runs here, if this is the main thread; SIGINT's raises KeyboardInterrupt.
void Caller::notice_signals() {
  if (PyErr_CheckSignals() == 0) return;
  auto raised = std::make_exception_ptr(nb::python_error());
  if (!raised_) raised_ = std::move(raised);
  stop_.request_stop();
}

// The two locks are never waited for at the same time.
void Caller::wait(const std::function<bool()>& withdraw) {
  for (bool is_finished = false; !is_finished;) {
    const std::function<void()>* asked = nullptr;
    {
      const nb::gil_scoped_release released;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kGlance, [&] { return is_finished_ || asked_; });
      asked = asked_;
      is_finished = is_finished_;
    }
    if (asked) answer(*asked);
    notice_signals();
    if (!is_finished && !asked && stop_.stop_requested() && withdraw()) {
      failure_ = std::make_exception_ptr(Cancelled("stopped as asked, before it began"));
      break;
    }
    if (!asked) continue;
    const nb::gil_scoped_release released;
    const std::scoped_lock lock(mutex_);
    has_raised_ = raised_ != nullptr;
    asked_ = nullptr;
    changed_.notify_all();
  }
  if (raised_) std::rethrow_exception(raised_);
  if (failure_) std::rethrow_exception(failure_);
}

void Caller::wait_to_the_end() {
  const nb::gil_scoped_release released;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_finished_; });
}

}  // namespace braid::python
