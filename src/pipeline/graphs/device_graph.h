// Work recorded once on a device and replayed by one call.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>

namespace braid {

class DeviceGraph {
 public:
  // Ends an unfinished recording and gives back the graph's memory.
  virtual ~DeviceGraph() = default;
  // Work that the calling thread puts on its current stream between the two is recorded, not run;
  // the stream must not be the default one. Memory allocated meanwhile stays the graph's. When one
  // of them throws, the graph can only be destroyed.
  virtual void begin() = 0;
  virtual void end() = 0;
  // Puts all recorded work on the current stream.
  virtual void replay() = 0;
};

// Why the device records no graphs, as a sentence's end; empty if it does.
std::string why_no_device_graph(at::Device device);

// nullptr where there is a reason for none.
std::unique_ptr<DeviceGraph> make_device_graph(at::Device device);

}  // namespace braid
