// Jobs that wait: a bounded number of pictures, and turns that go around the clients, so that many
// jobs of one do not keep the others waiting. Not for several threads at once.
#pragma once

#include <list>

#include "serve/job.h"

namespace braid::serve {

class Queue {
 public:
  explicit Queue(int max_pictures) : max_pictures_(max_pictures) {}

  // False where the job's pictures would be more than there may be.
  bool push(const std::shared_ptr<Job>& job);
  // The oldest job of the client whose turn it is; null when none waits.
  std::shared_ptr<Job> pop();
  // False when it does not wait here.
  bool remove(const Job& job);

  int num_jobs() const;
  int num_pictures() const;
  // In the order in which they would be started.
  std::vector<std::shared_ptr<Job>> in_order() const;

 private:
  struct Line {
    std::string client;
    std::deque<std::shared_ptr<Job>> jobs;
  };

  int max_pictures_;
  std::list<Line> lines_;  // of clients that wait; the first one's turn is next
};

}  // namespace braid::serve
