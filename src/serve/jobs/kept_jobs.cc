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

// The oldest is first.
std::vector<KeptJobs::Ended> KeptJobs::ended() const {
  std::vector<Ended> ended;
  for (const auto& [id, job] : jobs_)
    if (const auto when = job->status().finished)
      ended.push_back({.when = *when, .bytes = job->num_bytes(), .job = job});
  std::ranges::sort(ended, {}, &Ended::when);
  return ended;
}

// The latest one stays for its client, however large it is.
std::optional<std::size_t> KeptJobs::next_to_forget(const std::vector<Ended>& ended) const {
  if (ended.size() < 2) return {};
  std::size_t bytes = 0;
  for (const auto& one : ended) bytes += one.bytes;
  const bool are_many = ended.size() > limits_.jobs;
  if (!are_many && bytes <= limits_.bytes) return {};
  const auto latest = ended.end() - 1;
  const auto is_empty = [](const Ended& one) { return one.bytes == 0; };
  const auto empty = std::find_if(ended.begin(), latest, is_empty);
  if (are_many && empty != latest) return std::size_t(empty - ended.begin());
  const auto weight_of = [&](const Ended& one) { return are_many ? std::size_t(1) : one.bytes; };
  std::map<std::string, std::size_t> weights;
  for (const auto& one : ended) weights[one.job->order().client] += weight_of(one);
  std::optional<std::size_t> heaviest;
  for (std::size_t i = 0; i + 1 < ended.size(); ++i) {
    if (weight_of(ended[i]) == 0) continue;  // this would free nothing
    const auto weight = [&](std::size_t one) { return weights[ended[one].job->order().client]; };
    if (!heaviest || weight(i) > weight(*heaviest)) heaviest = i;
  }
  return heaviest;
}

void KeptJobs::forget_old() {
  auto left = ended();
  const auto forget = [&](std::size_t number) {
    jobs_.erase(left[number].job->id());
    left.erase(left.begin() + std::ptrdiff_t(number));
  };
  while (!left.empty() && Clock::now() - left.front().when > limits_.time) forget(0);
  while (const auto number = next_to_forget(left)) forget(*number);
}

int KeptJobs::num_unfetched(Clock::time_point now) const {
  int pictures = 0;
  for (const auto& [id, job] : jobs_) {
    const auto status = job->status();
    if (status.state != JobState::kDone || status.is_cancelling) continue;
    if (now - *status.finished >= limits_.to_fetch) continue;
    pictures += int(std::ranges::count(status.pictures, false, &MadePicture::is_fetched));
  }
  return pictures;
}

}  // namespace braid::serve
