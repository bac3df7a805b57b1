#include "serve/log_queue.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "serve/log.h"

namespace braid::serve {
namespace {

constexpr auto kRetryAfter = std::chrono::seconds(1);  // where nothing can be written

std::string line_about_dropped(std::uint64_t count) {
  std::string text;
  Log log([&](const std::string& line) { text = line; });
  log("warning",
      {{"message", text_of(count, count == 1 ? " line was" : " lines were",
                           " dropped: the reader of this log was too slow, or its disk full")}});
  return text;
}

}  // namespace

struct LogQueue::State {
  explicit State(Write write) : write(std::move(write)) {}

  void work();
  std::string take_line();

  const Write write;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> lines;
  std::size_t bytes = 0;  // of `lines`
  std::uint64_t num_dropped = 0;
  bool is_over = false;       // nothing is added any more
  bool is_abandoned = false;  // nobody waits any more
  bool is_done = false;
};

std::string LogQueue::State::take_line() {
  auto line = std::move(lines.front());
  lines.pop_front();
  bytes -= line.size();
  return line;
}

void LogQueue::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return is_over || !lines.empty() || num_dropped > 0; });
    const bool is_about_dropped = lines.empty();
    if (is_abandoned || (is_about_dropped && num_dropped == 0)) break;
    const auto count = is_about_dropped ? std::exchange(num_dropped, 0) : 1;
    const auto line = is_about_dropped ? line_about_dropped(count) : take_line();
    lock.unlock();
    const bool is_written = write(line);
    lock.lock();
    if (is_written) continue;
    num_dropped += count;
    if (!is_about_dropped) continue;
    if (is_over) break;
    changed.wait_for(lock, kRetryAfter, [&] { return is_over; });
  }
  is_done = true;
  changed.notify_all();
}

LogQueue::LogQueue(Write write, LogBounds bounds)
    : bounds_(bounds), state_(std::make_shared<State>(std::move(write))) {
  thread_ = std::thread([state = state_] { state->work(); });
}

LogQueue::~LogQueue() {
  std::unique_lock lock(state_->mutex);
  state_->is_over = true;
  state_->changed.notify_all();
  const bool is_done =
      state_->changed.wait_for(lock, bounds_.at_end, [&] { return state_->is_done; });
  state_->is_abandoned = !is_done;
  lock.unlock();
  if (is_done)
    thread_.join();
  else
    thread_.detach();
}

// After the first dropped line the others follow it until the queue is empty, so that the log has
// one gap, at the place where it says so.
void LogQueue::add(const std::string& line) {
  const std::scoped_lock lock(state_->mutex);
  if (state_->num_dropped > 0 || state_->bytes + line.size() > bounds_.bytes) {
    ++state_->num_dropped;
    return;
  }
  state_->lines.push_back(line);
  state_->bytes += line.size();
  state_->changed.notify_all();
}

}  // namespace braid::serve
