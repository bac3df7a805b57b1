// The races known from group offloading, each reproduced between pages and device.
#pragma once

#include <optional>
#include <set>

#include "weights/paging/device.h"

namespace braid::testing_pages {

enum class Race {
  kNone,
  kNoWaitForCopy,      // compute does not wait for the copy
  kScalesStay,         // part of a layer's tensors is not moved
  kUseOnWrongStream,   // the use is recorded on the copy stream
  kFreedBeforeUse,     // the slot is freed without waiting for the computation
  kBuffersStay,        // non-parameters keep another group's contents
  kOtherFile,          // a page with the same name from another checkpoint
  kFreedOnCopyStream,  // the slot is freed when the copies are done
  kWaitForNext,        // compute also waits for the group after the one it is about to use
  kBlockingCopy,       // the host waits for each copy
  kLoadedTwice,        // each page is copied twice
  kNotInTracedOrder,   // a group that the first pass did not run is not copied
  kNoWaitForUse,       // a copy does not wait for the use of what it overwrites
};

class FaultyDevice : public PageDevice {
 public:
  FaultyDevice(std::shared_ptr<PageDevice> device, Race race)
      : device_(std::move(device)), race_(race) {}

  bool is_asynchronous() const override { return device_->is_asynchronous(); }
  Slot allocate(std::int64_t bytes, Site site) override { return device_->allocate(bytes, site); }
  Tensor memory(Slot slot) const override { return device_->memory(slot); }
  Event make_event(Site site) override { return device_->make_event(site); }
  void synchronize(Event event, Site site) override { device_->synchronize(event, site); }

  void free(Slot slot, Site site) override {
    if (!is_freed_) device_->free(slot, site);
  }

  void record(Event event, StreamName stream, Site site) override {
    if (race_ == Race::kUseOnWrongStream) stream = StreamName::kCopy;
    if (stream == StreamName::kCopy) copied_.push_back(event);
    device_->record(event, stream, site);
    if (race_ == Race::kBlockingCopy && stream == StreamName::kCopy)
      device_->synchronize(event, site);
  }

  void wait(StreamName stream, Event event, Site site) override {
    const bool of_copy = stream == StreamName::kCompute;
    if (race_ == Race::kNoWaitForCopy && of_copy) return;
    if (race_ == Race::kNoWaitForUse && !of_copy) return;
    if (race_ == Race::kWaitForNext && of_copy) device_->wait(stream, copied_.back(), site);
    device_->wait(stream, event, site);
  }

  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override {
    auto page = from;
    const bool is_first = seen_.insert(from.name).second;
    if (race_ == Race::kScalesStay || race_ == Race::kBuffersStay) page.size /= 2;
    if (race_ == Race::kOtherFile) page.version += 1000;
    if (race_ == Race::kNotInTracedOrder && is_first && ++num_groups_ == 3) return;
    device_->copy(stream, to, page, site);
    if (race_ == Race::kLoadedTwice) device_->copy(stream, to, page, site);
  }

  void use(StreamName stream, Slot slot, const PageBytes& contents, Site site) override {
    device_->use(stream, slot, contents, site);
    const bool frees = race_ == Race::kFreedBeforeUse || race_ == Race::kFreedOnCopyStream;
    if (!frees || ++num_uses_ != 5) return;
    if (race_ == Race::kFreedOnCopyStream) device_->synchronize(copied_.back(), site);
    is_freed_ = true;
    device_->free(slot, site);
  }

 private:
  std::shared_ptr<PageDevice> device_;
  Race race_;
  std::vector<Event> copied_;
  std::set<std::string> seen_;
  int num_groups_ = 0, num_uses_ = 0;
  bool is_freed_ = false;
};

}  // namespace braid::testing_pages
