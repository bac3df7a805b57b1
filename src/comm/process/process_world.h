// Ranks that are processes: this one's view of them.
#pragma once

#include "comm/process/courier.h"
#include "comm/world.h"

namespace braid {

class ProcessWorld : public World {
 public:
  // Meets the other ranks: returns when all are connected, throws Error when some do not come
  // within a minute (or the deadline, if that is longer).
  ProcessWorld(const Launch& launch, std::chrono::milliseconds deadline,
               at::Device device = at::kCPU);
  // Over a wire that is there already.
  ProcessWorld(std::unique_ptr<Wire> wire, std::chrono::milliseconds deadline,
               at::Device device = at::kCPU);

  int size() const override { return group_.size(); }
  void run(const std::function<void(const Group& world)>& body) override;
  bool has_first_rank() const override { return group_.rank() == 0; }
  int ranks_on_these_cores() const override { return ranks_on_these_cores_; }

 private:
  [[noreturn]] void fail();
  void wait_for_failure(std::chrono::milliseconds patience) const;

  std::shared_ptr<Fate> fate_;
  std::shared_ptr<Courier> courier_;
  Group group_;
  int ranks_on_these_cores_ = 1;
};

}  // namespace braid
