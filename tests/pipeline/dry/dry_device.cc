#include "pipeline/dry/dry_device.h"

#include <ATen/ATen.h>

namespace braid {

Slot DryPageDevice::allocate(std::int64_t bytes, Site) {
  slots_.push_back(at::empty({bytes}, at::TensorOptions(at::kByte).device(at::kMeta)));
  slot_bytes_ += bytes;
  return {int(slots_.size()) - 1};
}

void DryPageDevice::free(Slot slot, Site) { slots_[std::size_t(slot.id)] = Tensor(); }

void DryPageDevice::copy(StreamName stream, Slot, const PageBytes& from, Site) {
  (stream == StreamName::kCopy ? copied_bytes_ : placed_bytes_) += from.size;
}

}  // namespace braid
