// Carries messages for a process while it computes: a thread of its own polls the wire. Beside them
// go the ranks' words about themselves, for which it has a Roster.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <thread>

#include "comm/process/roster.h"
#include "comm/transport.h"

namespace braid {

class Courier {
 public:
  // Of the group of all ranks. Channels above are for subgroups.
  static constexpr int kWorldChannel = Wire::kControl + 1;

  struct Parcel {
    int peer;
    Tensor bytes;  // contiguous, in host memory; held until the delivery is done
  };
  class Delivery;

  Courier(std::unique_ptr<Wire> wire, std::shared_ptr<Fate> fate);
  // Unless the world is lost, waits up to a deadline for the others to be done too.
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Fate& fate() const { return *fate_; }

  std::shared_ptr<Delivery> start(int channel, const std::vector<Parcel>& sends,
                                  const std::vector<Parcel>& receives);
  // Throws PeerFailed when a rank fails, and WorldLost naming the ranks that are waited for at the
  // deadline.
  void wait(Delivery& delivery, Patience patience = Patience::kDeadline);
  // The same on all ranks that have asked as often. Throws Error when there are no more.
  int new_channel();

  void begin_run() { roster_.begin_run(); }
  // Collective: how the run went for each rank, `mine` for this one. When it went wrong for any,
  // what was under way has then been dropped and all may begin anew. Waits without a deadline while
  // all live. Throws WorldLost.
  std::vector<Ending> end_run(Ending mine);
  // What to do on the courier's thread in each run that fails, as soon as that is known, so that
  // this rank waits for nobody who has left the run.
  void on_failure(std::function<void()> action);

  // Lets the other ranks end with what the rank that was lost first would say, and know whether it
  // is gone; returns when it is under way to all of them, or after a second.
  void tell_loss(int culprit, const std::exception_ptr& cause);

 private:
  struct Order {
    bool is_send;
    Wire::Message message;
    std::shared_ptr<Delivery> delivery;
  };

  void work();
  void take_orders();
  void go_on();
  void post(const Order& order);
  void finish(Wire::Ticket ticket);
  void react(std::uint64_t epoch);
  void drop();
  void say(Roster::Saying saying);  // from any thread
  void say_goodbye();
  std::vector<Ending> meet(const Ending& mine);
  void drop_what_is_under_way(const std::vector<Ending>& endings);
  std::string awaited_by(const Delivery& delivery);

  std::unique_ptr<Wire> wire_;
  std::shared_ptr<Fate> fate_;
  int rank_, size_;
  Roster roster_;
  int num_channels_ = 0;  // of subgroups

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Order> orders_;
  std::vector<Roster::Saying> sayings_;
  bool is_silent_ = true;  // everything said is under way
  bool is_ending_ = false;
  std::function<void()> on_failure_;
  std::vector<Ending> to_drop_;  // of the ranks whose messages should be dropped; else empty

  // Of the courier's thread alone.
  std::map<Wire::Ticket, Order> posted_;
  std::vector<std::uint64_t> bytes_sent_;  // to each rank, but for control messages
  std::uint64_t next_reaction_ = 0;        // the first epoch whose failure is not known yet
  bool is_dropping_ = false;
  std::thread thread_;
};

}  // namespace braid
