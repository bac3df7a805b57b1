// Threads that wait for work and last as long as their crew: what libraries keep for a thread, such
// as cuDNN's plans, is not made again for each piece of work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace braid {

class Crew {
 public:
  Crew() = default;
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // work(0) on the calling thread and work(i) on the crew's thread i, for i < size; returns when
  // all are done. The threads start at first use. `work` must not throw; throws, before any work is
  // done, if a thread cannot be started.
  void run(int size, const std::function<void(int)>& work);

 private:
  void serve(int number);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(int)>* work_ = nullptr;
  std::uint64_t round_ = 0;  // pieces of work so far
  int size_ = 0, open_ = 0;  // how many of this round's threads are not done
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace braid
