#include "serve/jobs/kept_jobs.h"

#include <algorithm>

namespace braid::serve {

std::shared_ptr<Job> KeptJobs::find(const std::string& id) const {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<Job>> KeptJobs::of_client(const std::string& client) const {
  std::vector<std::shared_ptr<Job>> jobs;
  for (const auto& [id, job] : jobs_)
    if (job->order().client == client) jobs.push_back(job);
  std::sort(jobs.begin(), jobs.end(),
            [](const auto& a, const auto& b) { return a->accepted() < b->accepted(); });
  return jobs;
}

void KeptJobs::forget_old() {
  std::vector<std::pair<Clock::time_point, std::shared_ptr<Job>>> finished;
  for (const auto& [id, job] : jobs_)
    if (const auto when = job->status().finished) finished.emplace_back(*when, job);
  std::sort(finished.begin(), finished.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  std::size_t count = 0, bytes = 0;
  for (const auto& [when, job] : finished) {
    bytes += job->num_bytes();
    const bool is_old = Clock::now() - when > limits_.time;
    const bool is_latest = ++count == 1;  // stays for its client, however large it is
    const bool is_too_much = count > limits_.jobs || bytes > limits_.bytes;
    if (is_old || (is_too_much && !is_latest)) jobs_.erase(job->id());
  }
}

bool KeptJobs::has_unfetched() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    const auto status = entry.second->status();
    const auto is_left = [](const MadePicture& picture) { return !picture.is_fetched; };
    return status.state == JobState::kDone && Clock::now() - *status.finished < limits_.to_fetch &&
           std::any_of(status.pictures.begin(), status.pictures.end(), is_left);
  });
}

}  // namespace braid::serve
