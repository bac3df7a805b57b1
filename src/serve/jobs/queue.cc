#include "serve/jobs/queue.h"

#include <algorithm>

namespace braid::serve {
namespace {

// A clip is one picture here, as it is where room is reserved before its frames are known.
Room room_of(const Job& job) { return {job.order().request.num_images, job.num_input_bytes()}; }

}  // namespace

bool Queue::has_room(Room wanted) const {
  const auto all = used();
  return all.pictures + wanted.pictures <= max_pictures_ &&
         all.input_bytes + wanted.input_bytes <= max_input_bytes_;
}

bool Queue::reserve(Room wanted) {
  if (!has_room(wanted)) return false;
  reserved_.pictures += wanted.pictures;
  reserved_.input_bytes += wanted.input_bytes;
  return true;
}

void Queue::release(Room reserved) {
  reserved_.pictures -= reserved.pictures;
  reserved_.input_bytes -= reserved.input_bytes;
}

bool Queue::push(const std::shared_ptr<Job>& job) {
  if (!has_room(room_of(*job))) return false;
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

Room Queue::used() const {
  auto used = reserved_;
  for (const auto& line : lines_)
    for (const auto& job : line.jobs) {
      const auto [pictures, input_bytes] = room_of(*job);
      used.pictures += pictures;
      used.input_bytes += input_bytes;
    }
  return used;
}

std::vector<std::shared_ptr<Job>> Queue::in_order() const {
  Queue rest = *this;
  std::vector<std::shared_ptr<Job>> order;
  while (auto job = rest.pop()) order.push_back(std::move(job));
  return order;
}

}  // namespace braid::serve
