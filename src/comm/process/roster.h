// The other processes of a world: who lives, who has left, and how the run went for each. Told over
// control messages, which all are alike in size.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/fate.h"
#include "comm/process/wire.h"

namespace braid {

// The loss of a rank that cannot say so itself: its process was killed, or hangs.
class RankIsGone : public WorldLost {
 public:
  using WorldLost::WorldLost;
};
bool is_gone(const std::exception_ptr& failure);

// How a run went for a rank.
struct Ending {
  // kFollowed: it ended because another rank had failed. kRefused: what the user gave is not
  // usable.
  enum class Kind : std::int32_t { kWell, kFollowed, kFailed, kRefused, kCancelled };
  Kind kind = Kind::kWell;
  std::string sentence = {};
  int num_channels = 0;          // that were given to groups
  std::uint64_t bytes_sent = 0;  // to the rank that is told, since the world began
};

// Called by one thread, the wire's, but for what is said to be for any.
class Roster {
 public:
  Roster(Wire& wire, std::shared_ptr<Fate> fate);
  ~Roster();

  // What this rank tells the others.
  struct Saying {
    enum class Kind : std::int32_t { kAlive, kEnding, kLoss, kGone, kGoodbye } kind;
    Ending ending = {};
    int culprit = 0;  // of a loss
  };
  // `bytes_sent[r]` to rank r.
  void tell(const Saying& saying, const std::vector<std::uint64_t>& bytes_sent);
  // Whether `ticket` was of a control message; what was heard has then been heeded.
  bool finish(Wire::Ticket ticket);
  void lose(int peer, const std::string& why);
  // Says that this rank lives, and takes those for dead that have said nothing for a deadline.
  void keep_watch();
  // Whether all that was told is under way.
  bool is_silent() const;

  // For any thread.
  bool has_left(int peer) const;
  bool have_all_left() const;
  // From now until the endings have come, a failure of another rank ends the run here.
  void begin_run();
  // The next ending of every rank, in rank order, `mine` for this one; waits without a deadline
  // while all live. Throws WorldLost.
  std::vector<Ending> await_endings(const Ending& mine);

 private:
  using Clock = std::chrono::steady_clock;
  struct Control;
  struct Peer;

  void listen_to(Peer& peer);
  void hear(Peer& peer);
  void heed(const Peer& peer);
  bool is_other(const Peer& peer) const;

  Wire& wire_;
  std::shared_ptr<Fate> fate_;
  Clock::duration interval_;  // between two signs of life
  Clock::time_point last_watch_, last_sign_;
  std::vector<std::unique_ptr<Peer>> peers_;

  mutable std::mutex mutex_;  // of endings, who has left, and is_running_
  std::condition_variable changed_;
  bool is_running_ = false;
};

}  // namespace braid
