// Of builds without a GPU backend.
#include "comm/process/device_link.h"

namespace braid {

std::shared_ptr<DeviceLink> make_device_link(const Group&, at::Device) { return nullptr; }

}  // namespace braid
