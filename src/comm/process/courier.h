// Carries messages for a process while it computes, and keeps watch over the other processes: a
// thread of its own polls the wire, tells the others every second that it lives, and passes on the
// first failure.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/fate.h"
#include "comm/process/wire.h"
#include "comm/transport.h"

namespace braid {

// The failure of a rank that cannot say so itself: its process was killed, or hangs.
class RankIsGone : public Error {
 public:
  using Error::Error;
};
bool is_gone(const std::exception_ptr& failure);

class Courier {
 public:
  // The channel of the couriers' own messages; transports take others.
  static constexpr int kControl = 0;

  struct Parcel {
    int peer;
    Tensor bytes;  // contiguous, in host memory; held until the delivery is done
  };
  class Delivery;

  Courier(std::unique_ptr<Wire> wire, std::shared_ptr<Fate> fate);
  // Unless the run has failed, waits up to a deadline for the others to be done too.
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Fate& fate() const { return *fate_; }

  std::shared_ptr<Delivery> start(int channel, const std::vector<Parcel>& sends,
                                  const std::vector<Parcel>& receives);
  // Throws PeerFailed when a rank fails, and Error naming the ranks that are waited for at the
  // deadline.
  void wait(Delivery& delivery, Patience patience = Patience::kDeadline);

  // What to do on the courier's thread when a failure is known, so that nobody waits for who is
  // gone.
  void on_failure(std::function<void()> action);

  // Lets the other ranks end with what the rank that failed first would say, and know whether it is
  // gone; returns when it is under way to all of them, or after a second.
  void tell_failure(int culprit, const std::exception_ptr& cause);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Kind : std::int32_t { kAlive, kFailure, kGone, kGoodbye };
  struct Control;
  struct Peer;
  struct Order {
    bool is_send;
    Wire::Message message;
    std::shared_ptr<Delivery> delivery;
  };

  struct Saying {
    Kind kind;
    int culprit = 0;
    std::string sentence = {};
  };

  void work();
  void take_orders();
  void post(const Order& order);
  void finish(Wire::Ticket ticket);
  void hear(Peer& peer);
  void listen_to(Peer& peer);
  void say(Saying saying);  // from any thread
  void tell(const Saying& saying);
  void keep_watch();
  void lose(int peer, const std::string& why);
  void react();
  void say_goodbye();
  std::string awaited_by(const Delivery& delivery);

  std::unique_ptr<Wire> wire_;
  std::shared_ptr<Fate> fate_;
  int rank_, size_;
  Clock::duration interval_;  // between two signs of life
  Clock::time_point last_watch_, last_sign_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Order> orders_;
  std::vector<Saying> sayings_;
  bool is_silent_ = true;  // everything said is under way
  bool is_ending_ = false;
  std::function<void()> on_failure_;

  // Of the courier's thread alone.
  std::map<Wire::Ticket, std::shared_ptr<Delivery>> deliveries_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::thread thread_;
};

}  // namespace braid
