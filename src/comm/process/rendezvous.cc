#include "comm/process/rendezvous.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/random_bits.h"
#include "base/text_stream.h"
#include "comm/process/handshake.h"
#include "comm/process/meeting.h"
#include "comm/process/socket_wire.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLongWait = 3s;
constexpr std::chrono::milliseconds kPause = 50ms;  // between two tries

class OtherVersion : public Error {
 public:
  using Error::Error;
};

// Tells people why nothing happens, unless it is gone before.
class Notice {
 public:
  Notice(std::chrono::milliseconds after, std::string sentence, const WarnOfWait& warn) {
    if (!warn) return;
    thread_ = std::jthread([=, this](const std::stop_token& gone) {
      try {
        std::unique_lock lock(mutex_);
        const bool is_gone = wakes_.wait_for(lock, gone, after, [] { return false; });
        if (!is_gone && !gone.stop_requested()) warn(sentence);
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
  }
  // Throws what `warn` threw.
  void end() {
    thread_ = {};
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wakes_;
  std::exception_ptr failure_;  // of the thread, which has ended where it is read
  std::jthread thread_;         // ends first
};

// Where a rank listens, as "port address address ...".
std::string place_of(const Launch& launch, const Listener& listener) {
  auto place = std::to_string(listener.port);
  for (const auto& address : addresses_towards(launch.host)) place += ' ' + address;
  return place;
}

// Loopback addresses are tried only if the meeting point is local too.
FileDescriptor connect_to_place(const std::string& place, bool is_local) {
  TextReader words(place);
  int port = 0;
  words >> port;
  std::string why = "it names no address";
  for (std::string address; words >> address;) {
    if (is_loopback(address) && !is_local) continue;
    try {
      return connect_to(address, port);
    } catch (const Error& e) {
      why = e.what();
    }
  }
  throw Error(why);
}

// The ranks of one meeting, seen by one of them: its connections to the others.
class PeerConnections {
 public:
  PeerConnections(const Launch& launch, Meeting& meeting)
      : launch_(launch),
        meeting_(meeting),
        is_local_(is_loopback(addresses_towards(launch.host).front())),
        place_(place_of(launch, listener_)),
        sockets_(std::size_t(launch.size)) {
    mine_.rank = launch.rank;
  }

  void connect() {
    launch_.rank == 0 ? invite() : meet_first_rank();
    for (int r = 1; r < launch_.rank; ++r) meet_lower_rank(r);
    accept_higher_ranks();
    wait_for_all();
  }
  std::vector<FileDescriptor> take() { return std::exchange(sockets_, {}); }

 private:
  // The store may outlive ranks, and they may meet there again: torchrun's does when it starts them
  // anew after a failure, or when its script runs Braid twice. So rank 0 invites to this meeting
  // under a new token, below which the others say where they are.
  static constexpr const char* kInvitation = "meeting";
  std::string name_of_place(int rank) const { return text_of(mine_.token, "/rank ", rank); }
  void invite() {
    mine_.token = random_bits();
    meeting_.tell(kInvitation, text_of(mine_.token, " ", place_));
  }
  void meet_first_rank();
  FileDescriptor answered(FileDescriptor socket, const std::string& invitation);
  void meet_lower_rank(int rank);
  void accept_higher_ranks();
  bool admit(AwaitedHandshakes::Heard heard);
  void check_version(int rank, const Handshake& theirs) const;
  void wait_for_all();
  void hear_from(const std::vector<int>& ranks);

  FileDescriptor& socket_of(int rank) { return sockets_[std::size_t(rank)]; }
  std::size_t most_silent() const {  // with room for some strangers
    return std::size_t(launch_.size) + 64;
  }

  const Launch& launch_;
  Meeting& meeting_;
  bool is_local_;
  Listener listener_ = listen_anywhere();
  std::string place_;
  Handshake mine_;
  std::vector<FileDescriptor> sockets_;
};

// An invitation may be left over from a meeting that failed. Then nobody is there, or somebody who
// does not answer to its token.
void PeerConnections::meet_first_rank() {
  for (;;) {
    const auto invitation = meeting_.ask(kInvitation, 0);
    const auto gap = invitation.find(' ');
    TextReader(invitation) >> mine_.token;
    std::string why;
    try {
      auto socket =
          connect_to_place(invitation.substr(std::min(gap, invitation.size())), is_local_);
      send_handshake(socket, mine_);
      socket_of(0) = answered(std::move(socket), invitation);
      why = "it does not answer";
    } catch (const OtherVersion&) {
      throw;
    } catch (const Error& e) {
      why = e.what();
    }
    if (socket_of(0).is_open()) break;
    check(meeting_.left() > kPause, "rank 0 cannot be reached: ", why);
    std::this_thread::sleep_for(kPause);
  }
  meeting_.tell(name_of_place(launch_.rank), place_);
}

// The connection if rank 0 answers. It is given up when it ends, or when rank 0 invites anew.
FileDescriptor PeerConnections::answered(FileDescriptor socket, const std::string& invitation) {
  constexpr auto kGlance = 200ms;
  AwaitedHandshakes awaited(1);
  awaited.add(std::move(socket), 0);
  for (;;) {
    auto heard = awaited.next(std::min(meeting_.end(), Clock::now() + kGlance));
    if (heard) {
      const auto& theirs = heard->handshake;
      if (!heard->is_handshake() || theirs.token != mine_.token || theirs.rank != 0)
        return FileDescriptor();
      check_version(0, theirs);
      return std::move(heard->socket);
    }
    if (meeting_.left() <= 0ms || meeting_.ask(kInvitation, 0) != invitation)
      return FileDescriptor();
  }
}

// Its word of where it is belongs to this meeting.
void PeerConnections::meet_lower_rank(int rank) {
  const auto place = meeting_.ask(name_of_place(rank), rank);
  while (!socket_of(rank).is_open()) {
    try {
      socket_of(rank) = connect_to_place(place, is_local_);
      send_handshake(socket_of(rank), mine_);
    } catch (const Error& e) {
      socket_of(rank) = FileDescriptor();
      check(meeting_.left() > kPause, "rank ", rank, " cannot be reached: ", e.what());
      std::this_thread::sleep_for(kPause);
    }
  }
}

// They come in any order, and strangers between them.
void PeerConnections::accept_higher_ranks() {
  AwaitedHandshakes awaited(most_silent());
  int missing = launch_.size - 1 - launch_.rank;
  while (missing > 0) {
    auto heard = awaited.next(meeting_.end(), &listener_);
    check(heard.has_value(), "rank ", launch_.rank, " waited in vain for ", missing,
          missing == 1 ? " other rank" : " other ranks", " to connect to ", place_text(launch_),
          launch_advice(launch_.size_variable));
    if (admit(std::move(*heard))) --missing;
  }
}

bool PeerConnections::admit(AwaitedHandshakes::Heard heard) {
  const auto& theirs = heard.handshake;
  const bool is_known = heard.is_handshake() && theirs.token == mine_.token &&
                        theirs.rank > launch_.rank && theirs.rank < launch_.size &&
                        !socket_of(theirs.rank).is_open();
  if (!is_known) return false;
  try {
    if (launch_.rank == 0) send_handshake(heard.socket, mine_);
  } catch (const Error&) {
    return false;  // it has gone, and may come again
  }
  check_version(theirs.rank, theirs);
  socket_of(theirs.rank) = std::move(heard.socket);
  return true;
}

void PeerConnections::check_version(int rank, const Handshake& theirs) const {
  if (theirs.version == kWireVersion) return;
  throw OtherVersion(text_of("rank ", rank, " has version ", theirs.version,
                             " of what ranks send each other, and rank ", launch_.rank,
                             " has version ", kWireVersion, ": all should run the same Braid"));
}

// Returns on all ranks at about the same time, so that none keeps watch over one that still waits
// for others.
void PeerConnections::wait_for_all() {
  std::vector<int> others;
  for (int r = 1; r < launch_.size; ++r) others.push_back(r);
  if (launch_.rank > 0) {
    send_handshake(socket_of(0), mine_);
    return hear_from({0});
  }
  hear_from(others);
  meeting_.forget(kInvitation);
  for (const int r : others) meeting_.forget(name_of_place(r));
  for (const int r : others) send_handshake(socket_of(r), mine_);
}

void PeerConnections::hear_from(const std::vector<int>& ranks) {
  AwaitedHandshakes awaited(most_silent());
  for (const int r : ranks) awaited.add(std::move(socket_of(r)), r);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto heard = awaited.next(meeting_.end());
    check(heard.has_value(), "rank ", launch_.rank, " waited in vain for ", ranks.size() - i,
          ranks.size() - i == 1 ? " rank" : " ranks", " to have met the others at ",
          place_text(launch_));
    check(heard->is_handshake(), "rank ", heard->expected, " ended before all ranks had met");
    socket_of(heard->expected) = std::move(heard->socket);
  }
}

// Keeps the store's server alive until the last rank has left: destroyed after the wire.
class MetWire : public SocketWire {
 public:
  MetWire(int rank, std::vector<FileDescriptor> sockets, c10::intrusive_ptr<c10d::TCPStore> store)
      : SocketWire(rank, std::move(sockets)), store_(std::move(store)) {}

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

std::atomic<bool> have_met = false;

}  // namespace

bool have_met_over_sockets() { return have_met; }

std::unique_ptr<Wire> meet_over_sockets(const Launch& launch, std::chrono::milliseconds patience,
                                        const WarnOfWait& warn) {
  have_met = true;
  Notice notice(std::min(kLongWait, patience / 2),
                text_of("rank ", launch.rank, " waits at ", place_text(launch), " for the ",
                        launch.size, " ranks that ", launch.size_variable, " tells of",
                        launch_advice(launch.size_variable)),
                warn);
  Meeting meeting(launch, patience);
  PeerConnections peers(launch, meeting);
  peers.connect();
  notice.end();
  return std::make_unique<MetWire>(launch.rank, peers.take(), meeting.store());
}

}  // namespace braid
