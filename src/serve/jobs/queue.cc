#include "serve/jobs/queue.h"

#include <algorithm>

#include "base/error.h"
#include "base/readable_bytes.h"

namespace braid::serve {
namespace {

// A clip is one picture here, as it is where room is reserved before its frames are known.
Room room_of(const Job& job) { return {job.order().request.num_images, job.num_input_bytes()}; }

void add_room(Room& sum, const Room& more) {
  sum.pictures += more.pictures;
  sum.input_bytes += more.input_bytes;
}

bool has_space(const Room& wanted, const Room& used, const Room& most) {
  return used.pictures + wanted.pictures <= most.pictures &&
         used.input_bytes + wanted.input_bytes <= most.input_bytes;
}

}  // namespace

bool Queue::has_room(const Room& wanted) const { return has_space(wanted, used(), most_); }

bool Queue::could_have(const Room& wanted) const { return has_space(wanted, {}, most_); }

Room Queue::share() const {
  return {.pictures = most_.pictures * 3 / 4, .input_bytes = most_.input_bytes / 4 * 3};
}

void Queue::meet(const std::string& client) {
  if (first_client_.empty()) first_client_ = client;
  is_shared_ = is_shared_ || client != first_client_;
}

// Who names a user has others beside it. An address alone may be a proxy's, before all clients, or
// that of the only one.
bool Queue::has_share_for(const std::string& client, const Room& wanted) const {
  if (!is_shared_ && !client.starts_with(kUserPrefix)) return true;
  const auto held = used_by(client);
  return held.pictures == 0 || has_space(wanted, held, share());
}

bool Queue::reserve(const std::string& client, const Room& wanted) {
  meet(client);
  if (!has_room(wanted) || !has_share_for(client, wanted)) return false;
  add_room(reserved_[client], wanted);
  return true;
}

void Queue::release(const std::string& client, const Room& reserved) {
  const auto it = reserved_.find(client);
  if (it == reserved_.end()) return;
  it->second.pictures -= reserved.pictures;
  it->second.input_bytes -= reserved.input_bytes;
  if (it->second.pictures == 0) reserved_.erase(it);
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
  Room used;
  for (const auto& [client, reserved] : reserved_) add_room(used, reserved);
  for (const auto& line : lines_)
    for (const auto& job : line.jobs) add_room(used, room_of(*job));
  return used;
}

Room Queue::used_by(const std::string& client) const {
  Room used;
  const auto it = reserved_.find(client);
  if (it != reserved_.end()) add_room(used, it->second);
  for (const auto& line : lines_)
    if (line.client == client)
      for (const auto& job : line.jobs) add_room(used, room_of(*job));
  return used;
}

std::vector<std::shared_ptr<Job>> Queue::in_order() const {
  Queue rest = *this;
  std::vector<std::shared_ptr<Job>> order;
  while (auto job = rest.pop()) order.push_back(std::move(job));
  return order;
}

std::string fullness_text(const Queue& queue, const std::string& client, const Room& wanted) {
  const auto bytes_text = [](const Room& room) {
    return readable_bytes(double(room.input_bytes)) + " of input pictures";
  };
  const bool is_full = !queue.has_room(wanted);
  const auto used = is_full ? queue.used() : queue.used_by(client);
  const auto waiting = text_of(used.pictures, " pictures wait, with ", bytes_text(used));
  const Room& most = queue.most();
  const Room share = queue.share();
  const int free = most.pictures - used.pictures;
  if (is_full && free == 0) return "the queue is full: " + waiting;
  if (is_full && free < wanted.pictures)
    return text_of("the queue has too few places: ", free, " of ", most.pictures,
                   " are free, this request needs ", wanted.pictures, "; ", waiting);
  if (is_full)
    return text_of("the queue is full: ", waiting, " of at most ", bytes_text(most),
                   ", this request has ", bytes_text(wanted));
  return text_of("this client has its share of the queue: ", waiting,
                 "; one client of several may have three quarters: ", share.pictures,
                 " pictures, with ", bytes_text(share));
}

ApiError too_large_for(const Queue& queue, const Room& wanted) {
  const auto& most = queue.most();
  if (wanted.pictures > most.pictures)
    return {
        400,
        text_of("a request may ask for at most ", most.pictures,
                " pictures, as many as may wait (--queue), this one asks for ", wanted.pictures),
        "invalid_value", "n"};
  return {413,
          text_of("a request's input pictures may have at most ",
                  readable_bytes(double(most.input_bytes)), " once they are decoded, these have ",
                  readable_bytes(double(wanted.input_bytes))),
          "body_too_large"};
}

}  // namespace braid::serve
