// For builds without a GPU backend.
#include "base/error.h"
#include "comm/process/device_link.h"

namespace braid {

std::string device_link_name() { return {}; }

std::shared_ptr<DeviceLink> make_device_link(const Group&, at::Device) {
  throw Error("this build has no link between GPUs");
}

}  // namespace braid
