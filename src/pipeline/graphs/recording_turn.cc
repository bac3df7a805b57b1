#include "pipeline/graphs/recording_turn.h"

#include <condition_variable>
#include <mutex>

namespace braid {
namespace {

struct Recorders {
  std::mutex mutex;
  std::condition_variable changed;
  const void* pipeline = nullptr;  // whose turn it is, while it has ranks
  int ranks = 0;
};

Recorders& recorders() {
  static Recorders all;
  return all;
}

}  // namespace

RecordingTurn::RecordingTurn(const void* pipeline, const std::function<void()>& prepare) {
  auto& now = recorders();
  std::unique_lock lock(now.mutex);
  now.changed.wait(lock, [&] { return now.ranks == 0 || now.pipeline == pipeline; });
  now.pipeline = pipeline;
  if (now.ranks == 0) prepare();
  ++now.ranks;
}

RecordingTurn::~RecordingTurn() {
  auto& now = recorders();
  const std::scoped_lock lock(now.mutex);
  if (--now.ranks == 0) now.changed.notify_all();
}

}  // namespace braid
