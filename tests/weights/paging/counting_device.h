// The CPU's device for pages, which also counts what it is told to copy.
#pragma once

#include "weights/paging/cpu_device.h"

namespace braid::testing_pages {

class CountingDevice : public CpuPageDevice {
 public:
  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override {
    bytes_copied_ += from.size;
    CpuPageDevice::copy(stream, to, from, site);
  }
  std::int64_t bytes_copied() const { return bytes_copied_; }

 private:
  std::int64_t bytes_copied_ = 0;
};

}  // namespace braid::testing_pages
