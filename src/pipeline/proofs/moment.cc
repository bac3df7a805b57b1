#include "pipeline/proofs/moment.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace braid {

Moment::Moment(c10::Device device) : clock_(std::chrono::steady_clock::now()) {
  if (device.is_cpu()) return;
  event_.emplace(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // with timing enabled
  event_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

double Moment::seconds_until(const Moment& later) const {
  if (!event_) return std::chrono::duration<double>(later.clock_ - clock_).count();
  later.event_->synchronize();
  return 1e-3 * event_->elapsedTime(*later.event_);
}

}  // namespace braid
