// A world whose ranks are processes, as seen from this one.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "comm/device/device_link.h"
#include "comm/process/progress_thread.h"
#include "comm/world.h"

namespace braid {

// What a rank brings to the run that begins a world.
struct WorldStart {
  std::function<LinkedDevices(const Group& world)> make_link = {};  // collective
  Collectives collectives = Collectives::kOrdered;
  std::exception_ptr failure = {};  // ends that run on all ranks before they compare anything
};

class ProcessWorld : public World {
 public:
  // Returns when all ranks are connected. Throws Error if some do not come within
  // `options.meeting`.
  ProcessWorld(const Launch& launch, const WorldOptions& options);
  // Uses an existing wire.
  ProcessWorld(std::unique_ptr<Wire> wire, std::chrono::milliseconds deadline,
               const WorldStart& start = {})
      : ProcessWorld(std::move(wire), std::make_shared<Fate>(deadline), start) {}
  ProcessWorld(std::unique_ptr<Wire> wire, std::shared_ptr<Fate> fate,
               const WorldStart& start = {});

  int size() const override { return group_.size(); }
  void run(const std::function<void(const Group& world)>& body, std::stop_token stop = {}) override;
  std::optional<std::string> loss() const override { return fate_->loss_told_by(group_.rank()); }
  bool has_first_rank() const override { return group_.rank() == 0; }
  bool has_all_ranks() const override { return group_.size() == 1; }
  int ranks_on_these_cores() const override { return ranks_on_these_cores_; }
  LinkUse link() const override { return link_use_; }
  void on_failed_run(std::function<void(int rank)> action) override {
    on_failed_run_ = std::move(action);
  }

 private:
  void enter(const std::function<void(const Group& world)>& body);
  void renew_link();
  void drop_what_was_recorded() const;
  std::vector<Ending> end_run(const std::exception_ptr& mine);
  [[noreturn]] void end_with(int culprit, const Ending& ending, const std::exception_ptr& mine);
  [[noreturn]] void end_lost();
  [[noreturn]] void throw_loss() const;
  void wait_for_loss(std::chrono::milliseconds patience) const;

  std::shared_ptr<Fate> fate_;
  std::shared_ptr<ProgressThread> progress_;
  std::shared_ptr<Transport> host_transport_;
  Group hosts_;  // all ranks, without a device link
  Group group_;
  std::shared_ptr<DeviceLink> link_;
  std::uint64_t link_epoch_ = 0;  // when the link was last renewed
  int ranks_on_these_cores_ = 1;
  LinkUse link_use_;
  std::function<void(int rank)> on_failed_run_;
};

}  // namespace braid
