// The MPI module: messages as MPI_Isend and MPI_Irecv, completed by testing.
#include <mpi.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "comm/process/mpi_module.h"

namespace braid {
namespace {

// MPI counts in int: larger messages are sent in pieces.
constexpr std::size_t kPiece = std::size_t(1) << 30;
// MPI moves bytes only while it is called. Between two polls the thread sleeps, longer while
// nothing happens, to leave the core to the computation.
constexpr auto kSpin = std::chrono::microseconds(40);
constexpr auto kShortest = std::chrono::microseconds(20), kLongest = std::chrono::microseconds(200);
constexpr auto kIdle = std::chrono::milliseconds(2);

void must(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(std::string(what) + ": " + std::string(text, std::size_t(length)));
}

class MpiWire : public Wire {
 public:
  MpiWire() {
    for (auto* const comm : {&control_, &comm_}) {
      must(MPI_Comm_dup(MPI_COMM_WORLD, comm), "MPI_Comm_dup");
      must(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    }
    must(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    must(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    came_.resize(std::size_t(size_));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket send(const Message& m) override {
    return start(m, kNobody, [&](std::byte* data, int count, MPI_Request* request) {
      return MPI_Isend(data, count, MPI_BYTE, m.peer, m.channel, comm_of(m), request);
    });
  }
  Ticket receive(const Message& m) override {
    return start(m, m.channel == kControl ? kNobody : m.peer,
                 [&](std::byte* data, int count, MPI_Request* request) {
                   return MPI_Irecv(data, count, MPI_BYTE, m.peer, m.channel, comm_of(m), request);
                 });
  }

  Events poll(std::chrono::microseconds at_most) override;
  void drop(int peer, std::uint64_t bytes) override;
  bool is_dropping() const override { return !dropping_.empty(); }

  void wake() noexcept override {
    const std::scoped_lock lock(mutex_);
    is_woken_ = true;
    woken_.notify_one();
  }

  void close() override {
    for (auto& request : requests_) {
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
    MPI_Comm_free(&comm_);
    MPI_Comm_free(&control_);
    MPI_Finalize();
  }
  void abandon() override {}  // mpirun ends the others

 private:
  static constexpr int kNobody = -1;
  struct Piece {
    Ticket ticket;  // 0: a message to be dropped
    int channel;
    int source;  // the sender; kNobody for a send or a control message
    std::size_t size;
    std::vector<std::byte> scratch = {};  // for unrequested messages
  };

  // Control messages have their own communicator, so that dropping any other tag spares them.
  MPI_Comm comm_of(const Message& m) const { return m.channel == kControl ? control_ : comm_; }
  template <class Start>
  Ticket start(const Message& m, int source, Start start_piece) {
    const auto ticket = next_ticket_++;
    for (std::size_t at = 0; at < m.size; at += kPiece) {
      const auto size = std::min(kPiece, m.size - at);
      requests_.emplace_back();
      pieces_.push_back({.ticket = ticket, .channel = m.channel, .source = source, .size = size});
      must(start_piece(m.data + at, int(size), &requests_.back()), "MPI cannot start a message");
    }
    return ticket;
  }
  std::vector<Ticket> take_ended();
  void test(Events& events);
  void drop_more();
  bool sleep(std::chrono::microseconds time);  // returns whether it was woken

  MPI_Comm control_ = MPI_COMM_NULL, comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  Ticket next_ticket_ = 1;
  std::vector<MPI_Request> requests_;  // parallel to pieces_
  std::vector<Piece> pieces_;
  std::vector<std::uint64_t> came_;        // bytes from each rank, without control messages
  std::map<int, std::uint64_t> dropping_;  // by source: until this many bytes have come
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
};

// The tickets of the pieces that have completed since the last call.
std::vector<Wire::Ticket> MpiWire::take_ended() {
  std::vector<int> which(requests_.size());
  std::vector<MPI_Status> statuses(requests_.size());
  int count = 0;
  must(MPI_Testsome(int(requests_.size()), requests_.data(), &count, which.data(), statuses.data()),
       "MPI_Testsome");
  std::vector<Ticket> ended;
  for (int i = 0; i < count && count != MPI_UNDEFINED; ++i) {
    const auto& piece = pieces_[std::size_t(which[std::size_t(i)])];
    int is_cancelled = 0;
    MPI_Test_cancelled(&statuses[std::size_t(i)], &is_cancelled);
    if (piece.source != kNobody && !is_cancelled) came_[std::size_t(piece.source)] += piece.size;
    ended.push_back(piece.ticket);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    if (kept != i) {  // a move into itself would free what MPI still writes to
      requests_[kept] = requests_[i];
      pieces_[kept] = std::move(pieces_[i]);
    }
    ++kept;
  }
  requests_.resize(kept);
  pieces_.resize(kept);
  return ended;
}

void MpiWire::test(Events& events) {
  for (const auto ticket : take_ended()) {  // done when its last piece is
    const bool is_open = std::any_of(pieces_.begin(), pieces_.end(),
                                     [&](const Piece& piece) { return piece.ticket == ticket; });
    const bool is_told =
        std::find(events.done.begin(), events.done.end(), ticket) != events.done.end();
    if (ticket != 0 && !is_open && !is_told) events.done.push_back(ticket);
  }
}

// A receive that has already matched its message continues despite this, and ends normally.
void MpiWire::drop(int peer, std::uint64_t bytes) {
  dropping_[peer] = bytes;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].source != peer) continue;
    pieces_[i].ticket = 0;
    must(MPI_Cancel(&requests_[i]), "MPI_Cancel");
  }
}

// Receives unrequested messages, one per source at a time.
void MpiWire::drop_more() {
  for (auto it = dropping_.begin(); it != dropping_.end();) {
    const auto [source, bytes] = *it;
    const bool is_busy =
        std::any_of(pieces_.begin(), pieces_.end(),
                    [&, from = source](const Piece& piece) { return piece.source == from; });
    if (!is_busy && came_[std::size_t(source)] >= bytes) {
      it = dropping_.erase(it);
      continue;
    }
    ++it;
    if (is_busy) continue;
    int has_come = 0, size = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};
    must(MPI_Improbe(source, MPI_ANY_TAG, comm_, &has_come, &message, &status), "MPI_Improbe");
    if (!has_come) continue;
    must(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
    requests_.emplace_back();
    pieces_.push_back({.ticket = 0,
                       .channel = status.MPI_TAG,
                       .source = source,
                       .size = std::size_t(size),
                       .scratch = std::vector<std::byte>(std::size_t(size))});
    must(MPI_Imrecv(pieces_.back().scratch.data(), size, MPI_BYTE, &message, &requests_.back()),
         "MPI_Imrecv");
  }
}

bool MpiWire::sleep(std::chrono::microseconds time) {
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, time, [&] { return is_woken_; });
  return std::exchange(is_woken_, false);
}

Wire::Events MpiWire::poll(std::chrono::microseconds at_most) {
  using Clock = std::chrono::steady_clock;
  const bool was_dropping = is_dropping();
  const bool has_work =
      was_dropping || std::any_of(pieces_.begin(), pieces_.end(),
                                  [](const Piece& piece) { return piece.channel != kControl; });
  const auto began = Clock::now();
  auto pause = std::chrono::duration_cast<std::chrono::microseconds>(kShortest);
  Events events;
  while (true) {
    test(events);
    drop_more();
    const auto passed = Clock::now() - began;
    if (!events.done.empty() || passed > at_most || was_dropping != is_dropping()) return events;
    if (has_work && passed < kSpin) {
      std::this_thread::yield();
      continue;
    }
    if (sleep(has_work ? pause : kIdle)) return events;
    pause = std::min<std::chrono::microseconds>(2 * pause, kLongest);
  }
}

}  // namespace
}  // namespace braid

extern "C" __attribute__((visibility("default"))) braid::Wire* braid_open_mpi_wire(
    char* why, std::size_t room) {
  try {
    int provided = MPI_THREAD_SINGLE, is_running = 0;
    MPI_Initialized(&is_running);
    if (is_running)
      MPI_Query_thread(&provided);
    else
      braid::must(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
                  "MPI_Init_thread");
    if (provided < MPI_THREAD_SERIALIZED)
      throw std::runtime_error("this MPI cannot be used by several threads");
    return new braid::MpiWire();
  } catch (const std::exception& e) {
    std::snprintf(why, room, "%s", e.what());
    return nullptr;
  }
}
