// Finished jobs kept for a while, for clients that come back. Not thread-safe.
#pragma once

#include "serve/jobs/job.h"

namespace braid::serve {

// How long jobs are kept, and how many.
struct KeepLimits {
  std::chrono::seconds time = std::chrono::minutes(10);
  std::size_t jobs = 256, bytes = std::size_t(256) << 20;
  std::chrono::seconds to_fetch = std::chrono::seconds(5);  // to fetch pictures, when stopping
};

class KeptJobs {
 public:
  explicit KeptJobs(KeepLimits limits) : limits_(limits) {}

  void add(const std::shared_ptr<Job>& job) { jobs_[job->id()] = job; }
  std::shared_ptr<Job> find(const std::string& id) const;                        // null if unknown
  std::vector<std::shared_ptr<Job>> of_client(const std::string& client) const;  // oldest first
  // Drops ended jobs that are too old. Of too many, those without pictures go first, then those of
  // the client that has most, each time the oldest one; of too large ones, those of the client
  // whose pictures take most.
  void forget_old();
  // Counts pictures of jobs that ended within `to_fetch` before `now`, and which nobody has
  // fetched: their clients have just been told of them. Jobs that were cancelled, also too late,
  // have none.
  int num_unfetched(Clock::time_point now) const;

 private:
  struct Ended {
    Clock::time_point when;
    std::size_t bytes = 0;
    std::shared_ptr<Job> job;
  };
  std::vector<Ended> ended() const;
  std::optional<std::size_t> next_to_forget(const std::vector<Ended>& ended) const;

  KeepLimits limits_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
};

}  // namespace braid::serve
