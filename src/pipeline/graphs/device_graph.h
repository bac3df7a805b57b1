// Work that a device was given once and repeats at one call.
#pragma once

#include <c10/core/Device.h>

#include <memory>

namespace braid {

class DeviceGraph {
 public:
  // Ends a recording that did not come to its end, and gives back the memory of the graph.
  virtual ~DeviceGraph() = default;
  // Between the two, what the calling thread gives its current stream, which must not be the
  // default one, is recorded and not done. Memory that it is given meanwhile stays the graph's.
  // When one of them throws, the graph is of no use but to be destroyed.
  virtual void begin() = 0;
  virtual void end() = 0;
  // Puts all of it on the current stream.
  virtual void replay() = 0;
};

// nullptr where graphs are not recorded: on CPUs, and in builds for AMD.
std::unique_ptr<DeviceGraph> make_device_graph(at::Device device);

}  // namespace braid
