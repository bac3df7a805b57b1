// Ranks as threads of this process: the default when embedded, on CPUs and GPUs alike.
#pragma once

#include <functional>
#include <vector>

#include "comm/board.h"
#include "comm/crew.h"
#include "comm/device/device_link.h"
#include "comm/world.h"

namespace braid {

// Rank 0 is the calling thread; the others' threads are the same in every run. Ranks that own
// different GPUs exchange over a device link, as processes do.
class ThreadWorld : public World {
 public:
  using LinkMaker = std::function<LinkedDevices(const Group& world, at::Device device)>;
  // `now` is the clock that the deadline is measured by.
  explicit ThreadWorld(const WorldOptions& options, const LinkMaker& make_link = link_devices,
                       const std::function<Fate::Clock::time_point()>& now = Fate::Clock::now);

  void run(const std::function<void(const Group& world)>& body, std::stop_token stop = {}) override;

  int size() const override { return int(ranks_.size()); }
  std::optional<std::string> loss() const override { return fate_->loss_told_by(0); }
  bool has_first_rank() const override { return true; }
  bool has_all_ranks() const override { return true; }
  int ranks_on_these_cores() const override { return size(); }
  LinkUse link() const override { return link_use_; }
  void on_failed_run(std::function<void(int rank)> action) override {
    on_failed_run_ = std::move(action);
  }

 private:
  void link(const WorldOptions& options, const LinkMaker& make_link);
  void renew_link(int rank);
  void run_rank(int rank, const std::function<void(const Group& world)>& body);

  std::shared_ptr<Fate> fate_;
  std::shared_ptr<Board> board_;
  std::vector<std::shared_ptr<Transport>> host_transports_;
  std::vector<Group> hosts_, ranks_;                // without and with a link
  std::vector<std::shared_ptr<DeviceLink>> links_;  // by rank; none without a link
  std::vector<std::uint64_t> link_epochs_;          // when each was last renewed
  LinkUse link_use_;
  std::function<void(int rank)> on_failed_run_;
  Crew crew_;
};

// Creates a world for a single run.
void run_ranks(const WorldOptions& options, const std::function<void(const Group& world)>& body);

}  // namespace braid
