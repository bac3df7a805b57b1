// Which jobs the service accepts.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/readable_bytes.h"
#include "serve/service.h"

namespace braid::serve {
namespace {

constexpr int kLongestRetry = 120;  // seconds: OpenAI's clients give up on more

ApiError unavailable(Readiness readiness) {
  ApiError error(503,
                 readiness == Readiness::kLoading    ? "the model is still being loaded"
                 : readiness == Readiness::kDraining ? "the server is about to stop"
                                                     : "the server has stopped",
                 readiness == Readiness::kLoading ? "loading" : "draining");
  error.retry_after = 5;
  return error;
}

}  // namespace

const std::vector<Backend>& Service::backends() const {
  const std::scoped_lock lock(mutex_);
  if (backends_.empty()) throw unavailable(readiness_);
  return backends_;
}

ApiError Service::queue_full() const {
  const auto used = queue_.used();
  const auto text = text_of("the queue is full: ", used.pictures, " pictures wait, with ",
                            readable_bytes(double(used.input_bytes)), " of input pictures");
  ApiError error(429, text, "queue_full");
  const auto wait = std::ceil(running_ ? running_->status().eta.value_or(1) : 1);
  error.retry_after = int(std::clamp(wait, 1.0, double(kLongestRetry)));
  metrics_.request_refused("queue_full");
  return error;
}

void Service::require_ready() const {
  const std::scoped_lock lock(mutex_);
  if (readiness_ != Readiness::kReady) throw unavailable(readiness_);
}

void Service::require_room() const {
  const std::scoped_lock lock(mutex_);
  if (readiness_ != Readiness::kReady) throw unavailable(readiness_);
  if (!queue_.has_room({.pictures = 1})) throw queue_full();
}

std::shared_ptr<Room> Service::reserve(Room room) {
  const std::scoped_lock lock(mutex_);
  if (readiness_ != Readiness::kReady) throw unavailable(readiness_);
  if (!queue_.reserve(room)) throw queue_full();
  return {new Room(room), [this](Room* reserved) {
            const std::scoped_lock lock(mutex_);
            queue_.release(*std::unique_ptr<Room>(reserved));
          }};
}

std::shared_ptr<Job> Service::submit(Order order, const std::shared_ptr<Room>& reserved) {
  const std::scoped_lock lock(mutex_);
  if (readiness_ != Readiness::kReady) throw unavailable(readiness_);
  if (reserved) queue_.release(std::exchange(*reserved, {}));
  auto job = std::make_shared<Job>(random_id(), std::move(order));
  if (!queue_.push(job)) throw queue_full();
  kept_.forget_old();
  if (job->order().is_kept) kept_.add(job);
  changed_.notify_all();
  return job;
}

}  // namespace braid::serve
