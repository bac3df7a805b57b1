// Ranks as threads of this process: the default when embedded, on CPUs and GPUs alike.
#pragma once

#include <functional>
#include <vector>

#include "comm/board.h"
#include "comm/world.h"

namespace braid {

// Rank 0 is the calling thread.
class ThreadWorld : public World {
 public:
  explicit ThreadWorld(const WorldOptions& options);

  void run(const std::function<void(const Group& world)>& body, std::stop_token stop = {}) override;

  int size() const override { return int(ranks_.size()); }
  bool has_first_rank() const override { return true; }
  int ranks_on_these_cores() const override { return size(); }
  LinkUse link() const override { return {.over = size() > 1 ? "threads" : ""}; }

 private:
  void run_all(const std::function<void(const Group& world)>& body);
  void run_rank(int rank, const std::function<void(const Group& world)>& body);

  std::shared_ptr<Fate> fate_;
  std::shared_ptr<Board> board_;
  std::vector<Group> ranks_;
};

// Creates a world for a single run.
void run_ranks(const WorldOptions& options, const std::function<void(const Group& world)>& body);

}  // namespace braid
