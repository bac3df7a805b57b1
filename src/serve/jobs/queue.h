// Waiting jobs, bounded by the pictures to make and by the bytes of input pictures. Clients take
// turns, so that one with many jobs does not keep the others waiting. Not thread-safe.
#pragma once

#include <list>

#include "serve/jobs/job.h"

namespace braid::serve {

// What a job takes of the queue.
struct Room {
  int pictures = 0;
  std::size_t input_bytes = 0;  // of the pictures that it brings
};

class Queue {
 public:
  Queue(int max_pictures, std::size_t max_input_bytes)
      : max_pictures_(max_pictures), max_input_bytes_(max_input_bytes) {}

  bool has_room(Room wanted) const;
  // Keeps room for a job whose pictures are still being read. False if there is none.
  bool reserve(Room wanted);
  void release(Room reserved);
  // False if there is no room.
  bool push(const std::shared_ptr<Job>& job);
  // The oldest job of the client whose turn it is; null if none waits.
  std::shared_ptr<Job> pop();
  // False if it is not in the queue.
  bool remove(const Job& job);

  int num_jobs() const;
  Room used() const;  // by jobs and reservations
  bool has_reservations() const { return reserved_.pictures > 0; }
  // Lists the jobs in the order in which they start.
  std::vector<std::shared_ptr<Job>> in_order() const;

 private:
  struct Line {
    std::string client;
    std::deque<std::shared_ptr<Job>> jobs;
  };

  int max_pictures_;
  std::size_t max_input_bytes_;
  Room reserved_;
  std::list<Line> lines_;  // of waiting clients; the first one is next
};

}  // namespace braid::serve
