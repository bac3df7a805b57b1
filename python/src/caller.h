// A Python thread that waits for work on another thread. It runs the work's callbacks and notices
// Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace braid::python {

// Thrown within the work after a callback has raised. Python sees what that raised; ranks in other
// processes see these words.
struct CallbackRaised : std::exception {
  const char* what() const noexcept override { return "a callback raised an exception"; }
};

class Caller {
 public:
  // `stop` ends the work; so do Ctrl-C and end_calls().
  explicit Caller(std::stop_source stop = {});
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  std::thread::id thread() const { return thread_; }  // the one that waits

  // For the work: runs `callback` on the waiting thread, with the interpreter's lock. Throws
  // CallbackRaised if that raises.
  void call(const std::function<void()>& callback);
  // For the work: nothing follows.
  void finish(std::exception_ptr failure);

  // For the Python thread, which holds the interpreter's lock: returns when the work is finished.
  // `withdraw` takes back work that has not begun, and says whether it could: it is asked once the
  // work should end. Throws what a callback raised, KeyboardInterrupt, or what ended the work, in
  // this order.
  void wait(const std::function<bool()>& withdraw);
  // The same for work that calls nothing and always ends: signals stay pending.
  void wait_to_the_end();

 private:
  friend void end_calls();
  bool has_to_end(std::chrono::steady_clock::time_point callbacks_until) const;
  void answer(const std::function<void()>& callback);
  void notice_signals();

  std::stop_source stop_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* asked_ = nullptr;
  bool is_finished_ = false;
  bool has_raised_ = false;
  bool is_answering_ = false;  // a callback runs; used with the interpreter's lock only
  std::exception_ptr failure_;
  std::exception_ptr raised_;  // by a callback or a signal; used with the interpreter's lock only
};

// Before Python ends: asks all calls of other threads to stop, and returns when they have. A thread
// that waits in a call and then finds no interpreter would abort the process. Callbacks that do not
// return are waited for a while only. Throws what Ctrl-C raises.
void end_calls();

// Throws Error once end_calls() has begun on another thread.
void check_calls_may_begin();

}  // namespace braid::python
