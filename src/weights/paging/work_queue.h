// A thread that runs work in order: a stream on the host.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace braid {

class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();  // finishes the remaining work first
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(std::function<void()> work);  // must not throw
  void finish();                          // returns when all pushed work is done

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool is_busy_ = false, is_over_ = false;
  std::thread thread_;
};

// Events among queues: how often the host recorded each one, and how many of these were reached.
class HostEvents {
 public:
  int make();
  std::uint64_t record(int event);          // -> its number; call reach() with it in the queue
  std::uint64_t recorded(int event) const;  // the number to await
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
