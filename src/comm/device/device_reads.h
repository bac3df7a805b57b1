// How a rank that is a thread reads what others of the process hold on other GPUs. LibTorch copies
// between GPUs on the current stream of the one that it reads from, so that reads would queue
// behind what that GPU computes and behind each other. Here each reader has a stream of its own on
// each GPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace braid {

// When tensors on GPUs may be read, or have been.
using DeviceEvent = std::shared_ptr<c10::Event>;

// Marks the end of what the current streams of these tensors' GPUs were given so far; there is no
// event for CPUs.
DeviceEvent mark_current(const std::vector<at::Tensor>& tensors);
// Lets the current stream of the event's GPU wait. Nothing without an event.
void wait_on_current(const DeviceEvent& event);

class DeviceReads {
 public:
  // Lets `read` copy from `from`, on another GPU than `to`, on this reader's stream there: after
  // `ready`. Returns when what was read may be overwritten; nothing where both are one device.
  DeviceEvent operator()(at::Device from, at::Device to, const DeviceEvent& ready,
                         const std::function<void()>& read);

 private:
  std::map<at::DeviceIndex, c10::Stream> streams_;
};

}  // namespace braid
