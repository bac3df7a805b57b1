#include "pipeline/engine/turns.h"

#include <unistd.h>

namespace braid {

Turns::Turns(const char* thing) : thing_(thing), process_(::getpid()) {}

bool Turns::is_here() const { return process_ == ::getpid(); }

Turns::Turn Turns::take(const std::stop_token& stop) const {
  check(is_here(), "this ", thing_,
        " was made before fork(): make one in a process that was started anew");
  std::unique_lock lock(mutex_);
  check(taken_by_ != std::this_thread::get_id(), "a callback of this ", thing_,
        " cannot call it: it is drawing");
  if (!ended_.wait(lock, stop, [&] { return !taken_by_; }))
    throw Cancelled("stopped as asked, before it began");
  taken_by_ = std::this_thread::get_id();
  return Turn(*this);
}

Turns::Turn::~Turn() {
  const std::scoped_lock lock(of_.mutex_);
  of_.taken_by_.reset();
  of_.ended_.notify_one();
}

}  // namespace braid
