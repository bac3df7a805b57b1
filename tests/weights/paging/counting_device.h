// The CPU's device for pages, which also counts what it is told to copy.
#pragma once

#include "weights/paging/cpu_device.h"

namespace braid::testing_pages {

class CountingDevice : public CpuPageDevice {
 public:
  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override {
    copied_bytes_ += from.size;
    CpuPageDevice::copy(stream, to, from, site);
  }
  std::int64_t copied_bytes() const { return copied_bytes_; }

 private:
  std::int64_t copied_bytes_ = 0;
};

}  // namespace braid::testing_pages
