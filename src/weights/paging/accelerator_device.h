// Pages on a GPU, with LibTorch's streams and events. The compute stream is the calling thread's
// current one.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <vector>

#include "braid/memory.h"
#include "weights/paging/device.h"

namespace braid {

class AcceleratorPageDevice : public PageDevice {
 public:
  // Pages outside locked memory are staged through it: the host reads the next one while the device
  // computes. Those in host memory are copied as they are if the system locks no memory for that.
  AcceleratorPageDevice(at::Device device, Pin pin);
  ~AcceleratorPageDevice() override;

  bool is_asynchronous() const override { return true; }
  Slot allocate(std::int64_t bytes, Site site) override;
  void free(Slot slot, Site site) override;
  Tensor memory(Slot slot) const override { return slots_[std::size_t(slot.id)].memory; }
  Event make_event(Site site) override;

  void record(Event event, StreamName stream, Site site) override;
  void wait(StreamName stream, Event event, Site site) override;
  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override;
  void use(StreamName, Slot, const PageBytes&, Site) override {}
  void synchronize(Event event, Site site) override;

 private:
  struct SlotState {
    Tensor memory;
    Tensor staging;  // created for the first page that is staged
    bool is_locked = false;
    std::unique_ptr<c10::Event> staged = {};
  };
  c10::Stream stream_of(StreamName stream) const;
  c10::Event& event_of(Event event) const { return *events_[std::size_t(event.id)]; }
  void lock_staging(SlotState& slot) const;
  Tensor stage(SlotState& slot, const PageBytes& page) const;

  at::Device device_;
  Pin pin_;
  c10::Stream copies_;
  std::vector<SlotState> slots_;
  std::vector<std::unique_ptr<c10::Event>> events_;
};

}  // namespace braid
