// Pipelines of one process take turns at recording.
#pragma once

#include <functional>

namespace braid {

// The turn of a pipeline. LibTorch records once at a time in a process: who empties its allocator
// or waits for a device meanwhile spoils the recording, whatever it computes itself. The ranks of
// one pipeline record together, each on a GPU of its own, as they wait for each other in
// collectives; another pipeline waits for all of them. Two pipelines that both spread over
// processes may wait for each other's ranks until the deadline: they should draw in turns.
class RecordingTurn {
 public:
  // Waits until no other pipeline of this process has a turn; ranks of one name the same pipeline.
  // The rank that comes when nobody records calls `prepare`, and the others wait for that: it may
  // do what would spoil a recording.
  explicit RecordingTurn(
      const void* pipeline, const std::function<void()>& prepare = [] {});
  ~RecordingTurn();
  RecordingTurn(const RecordingTurn&) = delete;
  RecordingTurn& operator=(const RecordingTurn&) = delete;
};

}  // namespace braid
