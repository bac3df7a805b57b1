// Jobs that clients come back for, until some time after their end. Not for several threads at
// once.
#pragma once

#include "serve/job.h"

namespace braid::serve {

// How long, and how much of them.
struct KeepLimits {
  std::chrono::seconds time = std::chrono::minutes(10);
  std::size_t jobs = 256, bytes = std::size_t(256) << 20;
  std::chrono::seconds to_fetch = std::chrono::seconds(10);  // the pictures, when the server stops
};

class KeptJobs {
 public:
  explicit KeptJobs(KeepLimits limits) : limits_(limits) {}

  void add(const std::shared_ptr<Job>& job) { jobs_[job->id()] = job; }
  std::shared_ptr<Job> find(const std::string& id) const;  // null where there is none
  std::vector<std::shared_ptr<Job>> of_client(const std::string& client) const;  // oldest first
  // Of finished ones, the oldest first, those that are too old or more than are kept.
  void forget_old();
  // Whether somebody may still come for a picture that was made a moment ago.
  bool has_unfetched() const;

 private:
  KeepLimits limits_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
};

}  // namespace braid::serve
