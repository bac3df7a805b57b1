// Waiting jobs, bounded by the pictures to make and by the bytes of input pictures. Clients take
// turns, so that one with many jobs does not keep the others waiting, and leave room for each
// other. Not thread-safe.
#pragma once

#include <list>

#include "serve/api_error.h"
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
      : most_{.pictures = max_pictures, .input_bytes = max_input_bytes} {}

  // Whether the queue has it, whoever wants it.
  bool has_room(const Room& wanted) const;
  bool could_have(const Room& wanted) const;  // if it were empty
  // Keeps room for a job whose pictures are still being read. False if there is none, or if its
  // client, as of Order, would hold more than its share. A client that holds nothing may take what
  // there is.
  bool reserve(const std::string& client, const Room& wanted);
  void release(const std::string& client, const Room& reserved);
  // False if there is no room. A client's share was judged when it reserved its room.
  bool push(const std::shared_ptr<Job>& job);
  // The oldest job of the client whose turn it is; null if none waits.
  std::shared_ptr<Job> pop();
  // False if it is not in the queue.
  bool remove(const Job& job);

  int num_jobs() const;
  Room used() const;  // by jobs and reservations
  Room used_by(const std::string& client) const;
  const Room& most() const { return most_; }
  // The most that one client holds of a queue that others use: three quarters.
  Room share() const;
  bool has_reservations() const { return !reserved_.empty(); }
  // Lists the jobs in the order in which they start.
  std::vector<std::shared_ptr<Job>> in_order() const;

 private:
  struct Line {
    std::string client;
    std::deque<std::shared_ptr<Job>> jobs;
  };

  void meet(const std::string& client);
  bool has_share_for(const std::string& client, const Room& wanted) const;

  Room most_;
  std::map<std::string, Room> reserved_;  // by client
  std::list<Line> lines_;                 // of waiting clients; the first one is next
  std::string first_client_;              // that ever asked
  bool is_shared_ = false;                // another client has asked, too
};

// Says why there is no room for what the client wants now.
std::string fullness_text(const Queue& queue, const std::string& client, const Room& wanted);
// Tells a client of what an empty queue would not take either.
ApiError too_large_for(const Queue& queue, const Room& wanted);

}  // namespace braid::serve
