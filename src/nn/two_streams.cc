#include "nn/two_streams.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <exception>

namespace braid {
namespace {

c10::Stream current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

// `later` waits for what `earlier` has been given so far.
void order(const c10::Stream& earlier, const c10::Stream& later) {
  c10::Event event(earlier.device_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

Fork::Fork(const c10::Stream& second) : first_(current_stream(second.device())), second_(second) {
  order(first_, second_);
}

Fork::~Fork() {
  if (is_joined_) return;
  try {
    join();
  } catch (const std::exception&) {
    // the device has failed; what is already being thrown says so
  }
}

void Fork::join() {
  is_joined_ = true;
  order(second_, first_);
}

}  // namespace braid
