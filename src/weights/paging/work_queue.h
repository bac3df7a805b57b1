// A thread that does what it is given, in order: a stream of the host's own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace braid {

class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();  // does what is left first
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(std::function<void()> work);  // must not throw
  void finish();                          // returns when all that was pushed is done

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool is_busy_ = false, is_over_ = false;
  std::thread thread_;
};

// Events among queues: how often each was recorded by the host, and how often that was reached.
class HostEvents {
 public:
  int make();
  std::uint64_t record(int event);          // -> which time; reach() it where it lies
  std::uint64_t recorded(int event) const;  // what to await
  void reach(int event, std::uint64_t time);
  void await(int event, std::uint64_t time) const;

 private:
  struct Times {
    std::uint64_t recorded = 0, reached = 0;
  };
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Times> times_;
};

}  // namespace braid
