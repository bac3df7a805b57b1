// One thread that does a pipeline's work in order. It outlives the calls, so that LibTorch's
// threads do, too.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "caller.h"

namespace braid::python {

class Worker {
 public:
  Worker();
  ~Worker();  // ends the work that is left; only in the process of the thread
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // False in a child of fork(), which does not take threads along.
  bool is_here() const;

  // Does `work` on the thread, while this one, which holds the interpreter's lock, waits as
  // Caller::wait(). Throws Error in a callback of other work of this thread, which would wait for
  // itself, and where nobody would do the work: unless is_here(), and while Python ends.
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

  const pid_t process_;
  std::mutex mutex_;
  std::condition_variable_any given_;
  std::deque<Task> tasks_;
  const Caller* running_ = nullptr;  // whose work is done right now
  std::jthread thread_;              // last: it uses the others
};

// Destroys `part` on the worker's thread. Where that is not, both stay as they are for ever: what
// they would wait for does not come.
template <class Part>
void destroy_on(std::unique_ptr<Worker>& worker, std::unique_ptr<Part>& part) {
  if (worker->is_here()) {
    worker->run_to_the_end([&] { part.reset(); });
  } else {
    static_cast<void>(part.release());
    static_cast<void>(worker.release());
  }
}

}  // namespace braid::python
