// The other processes of a world: who lives, who has left, and how the run ended for each. They
// report it in control messages of one fixed size.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/fate.h"
#include "comm/process/wire.h"

namespace braid {

// The loss of a rank that cannot report it: its process was killed, or hangs.
class RankIsGone : public WorldLost {
 public:
  using WorldLost::WorldLost;
};
bool is_gone(const std::exception_ptr& failure);

// How a run ended for a rank.
struct Ending {
  // kFollowed: it ended because another rank failed. kRefused: the user's input is unusable.
  enum class Kind : std::int32_t { kWell, kFollowed, kFailed, kRefused, kCancelled };
  Kind kind = Kind::kWell;
  int culprit = 0;  // the rank whose failure the sentence tells, which this one may only follow
  std::string sentence = {};
  int num_channels = 0;          // given to groups so far
  std::uint64_t bytes_sent = 0;  // to the rank that is told, since the world began
};

// Called only by the wire's thread, except where marked.
class Membership {
 public:
  Membership(Wire& wire, std::shared_ptr<Fate> fate);
  ~Membership();

  // What this rank tells the others.
  struct StatusMessage {
    enum class Kind : std::int32_t { kAlive, kEnding, kLoss, kGone, kGoodbye } kind;
    Ending ending = {};
  };
  // `bytes_sent[r]` goes to rank r.
  void tell(const StatusMessage& status, const std::vector<std::uint64_t>& bytes_sent);
  // Whether `ticket` was a control message, which has then been processed.
  bool finish(Wire::Ticket ticket);
  void lose(int peer, const std::string& why);
  // Reports that this rank lives, and declares ranks dead that were silent for a deadline.
  void keep_watch();
  // Whether everything told has been sent.
  bool is_silent() const;

  // Callable from any thread.
  bool has_left(int peer) const;
  bool have_all_left() const;
  // From now until the endings have arrived, another rank's failure ends the run here.
  void begin_run();
  // The next ending of every rank, in rank order, `mine` for this one. Waits without a deadline
  // while all ranks live. Throws WorldLost.
  std::vector<Ending> await_endings(const Ending& mine);

 private:
  using Clock = Fate::Clock;
  struct Control;
  struct Peer;

  void listen_to(Peer& peer);
  void hear(Peer& peer);
  void apply(const Peer& peer);
  bool is_other(const Peer& peer) const;

  Wire& wire_;
  std::shared_ptr<Fate> fate_;
  Clock::duration interval_;  // between signs of life
  Clock::time_point last_watch_, last_sign_;
  std::vector<std::unique_ptr<Peer>> peers_;

  mutable std::mutex mutex_;  // guards endings, has_left and is_running_
  std::condition_variable changed_;
  bool is_running_ = false;
};

}  // namespace braid
