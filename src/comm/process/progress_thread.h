// Carries messages for a process while it computes: its own thread polls the wire. It also carries
// the ranks' status messages, which its Membership handles.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/process/membership.h"
#include "comm/transport.h"

namespace braid {

class ProgressThread {
 public:
  // The group of all ranks. Higher channels are for subgroups.
  static constexpr int kWorldChannel = Wire::kControl + 1;

  struct Parcel {
    int peer;
    Tensor bytes;  // contiguous, in host memory; held until delivered
  };
  class Delivery;

  ProgressThread(std::unique_ptr<Wire> wire, std::shared_ptr<Fate> fate);
  // Unless the world is lost, waits up to a deadline for the others to finish too.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const Fate& fate() const { return *fate_; }

  std::shared_ptr<Delivery> start(int channel, const std::vector<Parcel>& sends,
                                  const std::vector<Parcel>& receives);
  // Throws PeerFailed if a rank fails, and WorldLost naming the awaited ranks at the deadline.
  void wait(Delivery& delivery, Patience patience = Patience::kDeadline);
  // Returns the same number on all ranks after equally many calls. Throws Error when none are left.
  int new_channel();

  void begin_run() { membership_.begin_run(); }
  // Collective: returns how the run ended for each rank, `mine` for this one. If it failed for any,
  // messages in flight have been dropped and all may start afresh. Waits without a deadline while
  // all ranks live. Throws WorldLost.
  std::vector<Ending> end_run(Ending mine);
  // Runs on the progress thread as soon as a run is known to have failed, so that this rank does
  // not wait for ranks that have left the run.
  void on_failure(std::function<void()> action);

  // Tells the other ranks which rank was lost first, why, and whether it is gone. Returns when the
  // message is on its way to all of them, or after a second.
  void tell_loss(int culprit, const std::exception_ptr& cause);

 private:
  struct Command {
    bool is_send;
    Wire::Message message;
    std::shared_ptr<Delivery> delivery;
  };

  void work();
  void take_commands();
  void go_on();
  void post(const Command& command);
  void finish(Wire::Ticket ticket);
  void react(std::uint64_t epoch);
  void drop();
  void say(Membership::StatusMessage status);  // callable from any thread
  void announce_exit();
  std::vector<Ending> meet(const Ending& mine);
  void drop_what_is_under_way(const std::vector<Ending>& endings);
  std::string awaited_by(const Delivery& delivery);

  std::unique_ptr<Wire> wire_;
  std::shared_ptr<Fate> fate_;
  int rank_, size_;
  Membership membership_;
  int num_channels_ = 0;  // of subgroups

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> commands_;
  std::vector<Membership::StatusMessage> status_messages_;
  bool is_silent_ = true;  // everything said has been sent
  bool is_ending_ = false;
  std::function<void()> on_failure_;
  std::vector<Ending> to_drop_;  // endings of the ranks whose messages should be dropped, if any

  // Only used by the progress thread.
  std::map<Wire::Ticket, Command> posted_;
  std::vector<std::uint64_t> bytes_sent_;  // to each rank, without control messages
  std::uint64_t next_reaction_ = 0;        // first epoch whose failure is not yet handled
  bool is_dropping_ = false;
  std::thread thread_;
};

}  // namespace braid
