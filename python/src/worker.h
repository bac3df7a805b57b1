// One thread that does a pipeline's work in order. It outlives the calls, so that LibTorch's
// threads do, too.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "caller.h"

namespace braid::python {

class Worker {
 public:
  Worker();
  ~Worker();  // ends the work that is left
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Does `work` on the thread, while this one, which holds the interpreter's lock, waits as
  // Caller::wait(). Throws Error in a callback of other work of this thread, which would wait for
  // itself.
  void run(Caller& caller, const std::function<void()>& work);
  // The same for what releases memory: it cannot be refused, and Ctrl-C waits for it.
  void run_to_the_end(const std::function<void()>& work);

 private:
  struct Task {
    Caller* caller;
    const std::function<void()>* work;
  };
  void serve(const std::stop_token& stop);
  bool has_work_of(std::thread::id thread) const;
  bool withdraw(const Caller& caller);

  std::mutex mutex_;
  std::condition_variable_any given_;
  std::deque<Task> tasks_;
  const Caller* running_ = nullptr;  // whose work is done right now
  std::jthread thread_;              // last: it uses the others
};

}  // namespace braid::python
