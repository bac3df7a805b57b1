// Where the weights of a model's parts live while they are not needed.
#pragma once

#include "weights/paging/order_checker.h"
#include "weights/weights.h"

namespace braid {

// The pages of one rank, on one device.
class OffloadedParts {
 public:
  // `pages_on` stands in for what `device` keeps pages with; for tests and dry runs.
  OffloadedParts(const Offload& offload, at::Device device,
                 std::shared_ptr<PageDevice> pages_on = {});

  // Paging for the loads of the parts, one after another.
  Paging transformer();
  Paging control();  // of each ControlNet
  Paging text();
  Paging vae();
  // Call once all parts are loaded.
  void finish();

  // Throws Error naming the first hazard so far, if the order is checked.
  void check_order() const;

 private:
  Paging paging_of(OffloadMode mode, int resident);
  std::shared_ptr<Pages> add_pages(const PageOptions& options);

  Offload offload_;
  at::Device where_;
  std::shared_ptr<PageDevice> device_;
  std::shared_ptr<OrderChecker> checker_;
  std::shared_ptr<const PageFolder> folder_;
  std::shared_ptr<Pages> one_part_at_a_time_;  // for all parts offloaded whole
  std::vector<std::shared_ptr<Pages>> all_;
};

}  // namespace braid
