// Stands for device graphs in builds that record none.
#include "pipeline/graphs/device_graph.h"

namespace braid {

std::string why_no_device_graph(at::Device) { return "this build records no graphs"; }

std::unique_ptr<DeviceGraph> make_device_graph(at::Device) { return nullptr; }

}  // namespace braid
