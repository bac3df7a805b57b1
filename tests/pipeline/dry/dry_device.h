// Pages of models on the meta device: slots without memory, and the bytes that copies would move.
#pragma once

#include <vector>

#include "weights/paging/device.h"

namespace braid {

class DryPageDevice : public PageDevice {
 public:
  std::int64_t slot_bytes() const { return slot_bytes_; }
  std::int64_t placed_bytes() const { return placed_bytes_; }  // while loading
  std::int64_t copied_bytes() const { return copied_bytes_; }  // while computing

  bool is_asynchronous() const override { return true; }
  Slot allocate(std::int64_t bytes, Site site) override;
  void free(Slot slot, Site site) override;
  Tensor memory(Slot slot) const override { return slots_[std::size_t(slot.id)]; }
  Event make_event(Site) override { return {0}; }
  void record(Event, StreamName, Site) override {}
  void wait(StreamName, Event, Site) override {}
  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override;
  void use(StreamName, Slot, const PageBytes&, Site) override {}
  void synchronize(Event, Site) override {}

 private:
  std::vector<Tensor> slots_;
  std::int64_t slot_bytes_ = 0, placed_bytes_ = 0, copied_bytes_ = 0;
};

}  // namespace braid
