// A timer whose cancelling is final.
#pragma once

#include <memory>
#include <utility>  // Boost 1.74 uses std::exchange without it

#include <boost/asio.hpp>

namespace braid::serve {

// A steady_timer calls a handler that is queued already although it was cancelled.
class Alarm {
 public:
  explicit Alarm(const boost::asio::any_io_executor& executor) : timer_(executor) {}

  // Calls `ring` once, in its executor, unless it is cancelled, set anew or destroyed before.
  template <class Ring>
  void set(std::chrono::milliseconds after, Ring ring) {
    set_ = std::make_shared<bool>();
    timer_.expires_after(after);
    timer_.async_wait([still = std::weak_ptr(set_),
                       ring = std::move(ring)](const boost::system::error_code& error) mutable {
      if (!error && !still.expired()) ring();
    });
  }
  void cancel() {
    set_.reset();
    timer_.cancel();
  }

 private:
  boost::asio::steady_timer timer_;
  std::shared_ptr<bool> set_;
};

}  // namespace braid::serve
