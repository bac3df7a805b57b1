#include "fake_crossings.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

namespace braid::fake_gpu {
namespace {

struct Step {
  enum Kind { kCopy, kRecord, kWait } kind;
  std::size_t event = 0;  // which recording, counted from 1
  int from = 0, to = 0;
  std::int64_t bytes = 0;
};
using StreamName = std::pair<int, c10::StreamId>;

struct Notes {
  std::map<StreamName, std::deque<Step>> streams;
  std::map<const void*, std::size_t> recorded;  // the latest recording of an event
  std::size_t recordings = 0;
  std::int64_t bytes = 0;

  std::deque<Step>& of(const c10::Stream& s) { return streams[{s.device_index(), s.id()}]; }
};

std::mutex crossings_mutex;
std::optional<Notes> notes;

// Plays what was noted.
class Play {
 public:
  explicit Play(Notes all) : left_(std::move(all)) {}

  std::int64_t end() {
    while (go_on() || copy_next()) continue;
    return end_;
  }

 private:
  // Does what takes no time.
  bool go_on() {
    bool is_done = false;
    for (auto& [name, steps] : left_.streams)
      while (!steps.empty() && steps.front().kind != Step::kCopy) {
        const auto step = steps.front();
        const auto recorded = times_.find(step.event);
        if (step.kind == Step::kWait && recorded == times_.end()) break;
        if (step.kind == Step::kRecord) times_[step.event] = now_[name];
        if (step.kind == Step::kWait) now_[name] = std::max(now_[name], recorded->second);
        steps.pop_front();
        is_done = true;
      }
    return is_done;
  }
  // The copy that can begin first.
  bool copy_next() {
    std::deque<Step>* first = nullptr;
    StreamName on;
    std::int64_t begin = 0;
    for (auto& [name, steps] : left_.streams) {
      if (steps.empty() || steps.front().kind != Step::kCopy) continue;
      const auto& step = steps.front();
      const auto may = std::max({now_[name], sends_[step.from], receives_[step.to]});
      if (first && may >= begin) continue;
      first = &steps;
      on = name;
      begin = may;
    }
    if (!first) return false;
    const auto step = first->front();
    first->pop_front();
    now_[on] = sends_[step.from] = receives_[step.to] = begin + step.bytes;
    end_ = std::max(end_, begin + step.bytes);
    return true;
  }

  Notes left_;
  std::map<StreamName, std::int64_t> now_;
  std::map<std::size_t, std::int64_t> times_;  // of recordings
  std::map<int, std::int64_t> sends_, receives_;
  std::int64_t end_ = 0;
};

}  // namespace

Crossings::Crossings() {
  const std::scoped_lock lock(crossings_mutex);
  notes.emplace();
}
Crossings::~Crossings() {
  const std::scoped_lock lock(crossings_mutex);
  notes.reset();
}
std::int64_t Crossings::bytes() const {
  const std::scoped_lock lock(crossings_mutex);
  return notes->bytes;
}
std::int64_t Crossings::makespan() const {
  const std::scoped_lock lock(crossings_mutex);
  return Play(*notes).end();
}

void crossings::copy(const c10::Stream& stream, int from, int to, std::int64_t bytes) {
  const std::scoped_lock lock(crossings_mutex);
  if (!notes) return;
  notes->bytes += bytes;
  notes->of(stream).push_back({.kind = Step::kCopy, .from = from, .to = to, .bytes = bytes});
}

void crossings::record(const void* event, const c10::Stream& stream) {
  const std::scoped_lock lock(crossings_mutex);
  if (!notes) return;
  notes->recorded[event] = ++notes->recordings;
  notes->of(stream).push_back({.kind = Step::kRecord, .event = notes->recordings});
}

void crossings::wait(const void* event, const c10::Stream& stream) {
  const std::scoped_lock lock(crossings_mutex);
  if (!notes || notes->recorded.count(event) == 0) return;
  notes->of(stream).push_back({.kind = Step::kWait, .event = notes->recorded.at(event)});
}

}  // namespace braid::fake_gpu
