#include "caller.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "braid/braid.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

constexpr auto kGlance = std::chrono::milliseconds(50);  // how long Ctrl-C may go unnoticed
constexpr auto kCallbacksEnd = std::chrono::seconds(10);

// Used with the interpreter's lock only.
struct Callers {
  pid_t process = 0;
  std::set<Caller*> all = {};
  std::thread::id ended_by = {};  // the thread that is in end_calls(), or was
};

// Those of this process: fork() copies what its parent knows of threads, but not the threads.
Callers& callers() {
  static Callers known;
  if (known.process != ::getpid()) known = {.process = ::getpid()};
  return known;
}

}  // namespace

Caller::Caller(std::stop_source stop) : stop_(std::move(stop)) { callers().all.insert(this); }

Caller::~Caller() { callers().all.erase(this); }

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
  is_answering_ = true;
  try {
    callback();
  } catch (...) {
    if (!raised_) raised_ = std::current_exception();
  }
  is_answering_ = false;
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

bool Caller::has_to_end(std::chrono::steady_clock::time_point callbacks_until) const {
  if (thread_ == std::this_thread::get_id()) return false;  // it cannot end before this returns
  return !is_answering_ || std::chrono::steady_clock::now() < callbacks_until;
}

void end_calls() {
  callers().ended_by = std::this_thread::get_id();
  const auto callbacks_until = std::chrono::steady_clock::now() + kCallbacksEnd;
  for (auto* const caller : callers().all)
    if (caller->has_to_end(callbacks_until)) caller->stop_.request_stop();
  const auto has_to_end = [&](const Caller* caller) { return caller->has_to_end(callbacks_until); };
  while (std::ranges::any_of(callers().all, has_to_end)) {
    {
      const nb::gil_scoped_release released;
      std::this_thread::sleep_for(kGlance);
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void check_calls_may_begin() {
  const auto ended_by = callers().ended_by;
  if (ended_by != std::thread::id() && ended_by != std::this_thread::get_id())
    throw Error("a thread cannot call a pipeline while Python ends: join it first");
}

}  // namespace braid::python
