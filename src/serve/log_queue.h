// Lines between a server that logs them and a reader that may stall: the server never waits.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace braid::serve {

struct LogBounds {
  std::size_t bytes = 1 << 20;             // of lines that wait; further ones are dropped
  std::chrono::milliseconds at_end{2000};  // how long the end waits for the reader
};

// Any thread may add lines.
class LogQueue {
 public:
  // Returns false if the line cannot be written. It may take any time, even forever, so it should
  // own what it uses. A thread of the queue calls it.
  using Write = std::function<bool(const std::string& line)>;

  explicit LogQueue(Write write, LogBounds bounds = {});
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;
  ~LogQueue();  // writes what waits, unless that takes longer than its bound

  // Returns at once. Lines that do not fit or cannot be written are counted; the queue logs their
  // number once it can write again.
  void add(const std::string& line);

 private:
  struct State;

  LogBounds bounds_;
  std::shared_ptr<State> state_;  // the thread's too, which a stalled reader may hold for longer
  std::thread thread_;
};

}  // namespace braid::serve
