#include "serve/jobs/queue.h"

#include <algorithm>

namespace braid::serve {

bool Queue::has_room(int pictures, std::size_t input_bytes) const {
  return num_pictures() + pictures <= max_pictures_ &&
         num_input_bytes() + input_bytes <= max_input_bytes_;
}

bool Queue::push(const std::shared_ptr<Job>& job) {
  if (!has_room(job->num_pictures(), job->num_input_bytes())) return false;
  const auto& client = job->order().client;
  const auto line = std::find_if(lines_.begin(), lines_.end(),
                                 [&](const Line& one) { return one.client == client; });
  if (line == lines_.end())
    lines_.push_back({.client = client, .jobs = {job}});
  else
    line->jobs.push_back(job);
  return true;
}

std::shared_ptr<Job> Queue::pop() {
  if (lines_.empty()) return nullptr;
  auto& line = lines_.front();
  auto job = line.jobs.front();
  line.jobs.pop_front();
  if (line.jobs.empty())
    lines_.pop_front();
  else
    lines_.splice(lines_.end(), lines_, lines_.begin());
  return job;
}

bool Queue::remove(const Job& job) {
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    const auto is_it = [&](const auto& one) { return one.get() == &job; };
    if (std::erase_if(line->jobs, is_it) == 0) continue;
    if (line->jobs.empty()) lines_.erase(line);
    return true;
  }
  return false;
}

int Queue::num_jobs() const {
  std::size_t jobs = 0;
  for (const auto& line : lines_) jobs += line.jobs.size();
  return int(jobs);
}

int Queue::num_pictures() const {
  int pictures = 0;
  for (const auto& line : lines_)
    for (const auto& job : line.jobs) pictures += job->num_pictures();
  return pictures;
}

std::size_t Queue::num_input_bytes() const {
  std::size_t bytes = 0;
  for (const auto& line : lines_)
    for (const auto& job : line.jobs) bytes += job->num_input_bytes();
  return bytes;
}

std::vector<std::shared_ptr<Job>> Queue::in_order() const {
  Queue rest = *this;
  std::vector<std::shared_ptr<Job>> order;
  while (auto job = rest.pop()) order.push_back(std::move(job));
  return order;
}

}  // namespace braid::serve
