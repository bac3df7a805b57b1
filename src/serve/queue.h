// Jobs that wait: a bounded number of pictures, to make and brought along, and turns that go around
// the clients, so that many jobs of one do not keep the others waiting. Not for several threads at
// once.
#pragma once

#include <list>

#include "serve/job.h"

namespace braid::serve {

class Queue {
 public:
  explicit Queue(int max_pictures, std::size_t max_input_bytes = std::size_t(512) << 20)
      : max_pictures_(max_pictures), max_input_bytes_(max_input_bytes) {}

  // False where the pictures of the job, or those that it brings, would be more than there may be.
  bool push(const std::shared_ptr<Job>& job);
  // The oldest job of the client whose turn it is; null when none waits.
  std::shared_ptr<Job> pop();
  // False when it does not wait here.
  bool remove(const Job& job);

  int num_jobs() const;
  int num_pictures() const;
  std::size_t num_input_bytes() const;
  // In the order in which they would be started.
  std::vector<std::shared_ptr<Job>> in_order() const;

 private:
  struct Line {
    std::string client;
    std::deque<std::shared_ptr<Job>> jobs;
  };

  int max_pictures_;
  std::size_t max_input_bytes_;
  std::list<Line> lines_;  // of clients that wait; the first one's turn is next
};

}  // namespace braid::serve
