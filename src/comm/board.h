// The meeting place of one thread group: each rank posts something, all arrive, each reads what the
// others posted, all leave.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "comm/device/device_reads.h"
#include "comm/fate.h"
#include "comm/transport.h"

namespace braid {

class Board {
 public:
  Board(int size, std::shared_ptr<Fate> fate);

  int size() const { return int(slots_.size()); }
  const Fate& fate() const { return *fate_; }

  struct Slot {
    Note note;
    std::vector<at::Tensor> tensors;
    DeviceEvent ready;               // when these may be read
    std::vector<DeviceEvent> reads;  // by rank: when this rank has read that one's
  };
  struct Letter {
    at::Tensor x;
    DeviceEvent ready;
  };
  // This rank's own slot; other ranks' slots may be read between two meetings.
  Slot& slot(int rank) { return slots_[std::size_t(rank)]; }

  // Returns once every rank has called it equally often. Throws PeerFailed if a rank fails, and
  // WorldLost naming the absent ranks when the deadline passes.
  void meet(int rank, Patience patience = Patience::kDeadline);

  // Tensors in flight from one rank to the next, first in, first out.
  void send(int to, Letter letter);
  Letter receive(int at);

  // The board of a subgroup, the same for all ranks that request it with equal `ranks` and `time`
  // in an epoch.
  std::shared_ptr<Board> subgroup(const std::vector<int>& ranks, std::uint64_t time);

  // Clears what a failed run left here and on the boards of subgroups. No rank may be meeting.
  void clear();

 private:
  std::string absent() const;

  std::shared_ptr<Fate> fate_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> arrivals_;  // how often each rank arrived
  std::uint64_t meetings_ = 0;           // how often all had arrived
  std::vector<std::deque<Letter>> mail_;
  // A board lives as long as some rank holds it.
  using Asked = std::tuple<std::uint64_t, std::uint64_t, std::vector<int>>;  // epoch, time, ranks
  std::map<Asked, std::weak_ptr<Board>> subgroups_;
};

}  // namespace braid
