#include "pipeline/sampling/step_pace.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace braid {

void StepPace::step_is_given() {
  if (device_.is_cpu()) return;
  if (last_) last_->synchronize();
  last_.emplace(device_.type());
  last_->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

}  // namespace braid
