// Changes weights that lie in pages, such as when fusing a LoRA.
#include <ATen/ATen.h>

#include "base/error.h"
#include "weights/paging/cpu_device.h"
#include "weights/paging/pages.h"

namespace braid {

// A group's contents in host memory, with room for a file header if it is stored in a file.
Tensor Pages::contents_of(const Group& group) const {
  const auto bytes = room_for(group);
  auto contents = bytes.narrow(0, bytes.numel() - group.page.size, group.page.size);
  if (group.page.file || group.page.memory.defined())
    read_page(group.page, static_cast<std::byte*>(contents.mutable_data_ptr()));
  else
    contents.copy_(device_->memory(slots_[std::size_t(group.slot)].memory));
  return bytes;
}

void Pages::rewrite(int index, const std::function<void(std::vector<Tensor>&)>& change) {
  auto& group = groups_[std::size_t(index)];
  auto& slot = slots_[std::size_t(group.slot)];
  check(!slot.is_in_use, "the weights of ", group.page.name, " cannot change while in use");
  device_->synchronize(slot.copied);
  const auto bytes = contents_of(group);
  const auto contents = bytes.narrow(0, bytes.numel() - group.page.size, group.page.size);
  std::vector<Tensor> tensors;
  for (const auto& place : group.places) tensors.push_back(place.in(contents));
  change(tensors);
  group.page.version = ++last_version_;
  if (options_.folder)
    group.page.file = options_.folder->put(span_of(bytes), id_of(source_of(contents).identity()));
  else
    group.page.memory = bytes;
  if (slot.holds == index) slot.holds = -1;
  group.is_resident ? place(index) : lock(group);
}

}  // namespace braid
