// Pages of models that compute on the CPU: the caller's thread is the compute stream, a thread of
// the device the copy stream. Useful when pages are on disk.
#pragma once

#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "weights/paging/device.h"
#include "weights/paging/work_queue.h"

namespace braid {

class CpuPageDevice : public PageDevice {
 public:
  ~CpuPageDevice() override;

  bool is_asynchronous() const override { return false; }
  Slot allocate(std::int64_t bytes, Site site) override;
  void free(Slot slot, Site site) override;
  Tensor memory(Slot slot) const override { return slots_[std::size_t(slot.id)]; }
  Event make_event(Site site) override;

  void record(Event event, StreamName stream, Site site) override;
  // On the compute stream, rethrows what reading a page threw that the event covers.
  void wait(StreamName stream, Event event, Site site) override;
  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override;
  void use(StreamName, Slot, const PageBytes&, Site) override {}
  void synchronize(Event event, Site site) override;

 protected:
  HostEvents& events() { return events_; }
  WorkQueue& copies() { return copies_; }

 private:
  void settle(Event event);
  void throw_failure(Event event) const;

  std::vector<Tensor> slots_;
  HostEvents events_;
  std::exception_ptr failure_;  // the copy stream's first since its last event
  mutable std::mutex mutex_;
  std::map<int, std::exception_ptr> failures_;  // by event, as it was last reached
  WorkQueue copies_;                            // last: its thread uses the members above
};

}  // namespace braid
