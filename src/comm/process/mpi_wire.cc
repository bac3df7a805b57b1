// The MPI module: messages as MPI_Isend and MPI_Irecv, completed by testing.
#include <mpi.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "comm/process/mpi_module.h"

namespace braid {
namespace {

// MPI counts in int: larger messages go in pieces.
constexpr std::size_t kPiece = std::size_t(1) << 30;
// MPI moves bytes only while it is called. Between two looks the thread sleeps, longer and longer
// while nothing happens, so that it does not take the core from those who compute.
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
    must(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    must(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    must(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
    must(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket send(const Message& m) override {
    return start(m, [&](std::byte* data, int count, MPI_Request* request) {
      return MPI_Isend(data, count, MPI_BYTE, m.peer, m.channel, comm_, request);
    });
  }
  Ticket receive(const Message& m) override {
    return start(m, [&](std::byte* data, int count, MPI_Request* request) {
      return MPI_Irecv(data, count, MPI_BYTE, m.peer, m.channel, comm_, request);
    });
  }

  Events poll(std::chrono::microseconds at_most) override;

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
    MPI_Finalize();
  }
  void abandon() override {}  // mpirun ends those that are left

 private:
  template <class Start>
  Ticket start(const Message& m, Start piece) {
    const auto ticket = next_ticket_++;
    for (std::size_t at = 0; at < m.size; at += kPiece) {
      requests_.emplace_back();
      tickets_.push_back(ticket);
      channels_.push_back(m.channel);
      must(piece(m.data + at, int(std::min(kPiece, m.size - at)), &requests_.back()),
           "MPI cannot start a message");
    }
    return ticket;
  }
  void test(Events& events);
  bool sleep(std::chrono::microseconds time);  // whether it was woken

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  Ticket next_ticket_ = 1;
  std::vector<MPI_Request> requests_;  // with their tickets and channels, side by side
  std::vector<Ticket> tickets_;
  std::vector<int> channels_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
};

void MpiWire::test(Events& events) {
  std::vector<int> which(requests_.size());
  int count = 0;
  must(MPI_Testsome(int(requests_.size()), requests_.data(), &count, which.data(),
                    MPI_STATUSES_IGNORE),
       "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0) return;
  std::vector<Ticket> ended;
  for (int i = 0; i < count; ++i) ended.push_back(tickets_[std::size_t(which[std::size_t(i)])]);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    tickets_[kept] = tickets_[i];
    channels_[kept++] = channels_[i];
  }
  requests_.resize(kept);
  tickets_.resize(kept);
  channels_.resize(kept);
  for (const auto ticket : ended) {  // done when its last piece is
    const bool is_open = std::find(tickets_.begin(), tickets_.end(), ticket) != tickets_.end();
    const bool is_told =
        std::find(events.done.begin(), events.done.end(), ticket) != events.done.end();
    if (!is_open && !is_told) events.done.push_back(ticket);
  }
}

bool MpiWire::sleep(std::chrono::microseconds time) {
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, time, [&] { return is_woken_; });
  return std::exchange(is_woken_, false);
}

Wire::Events MpiWire::poll(std::chrono::microseconds at_most) {
  using Clock = std::chrono::steady_clock;
  const bool has_work =
      std::any_of(channels_.begin(), channels_.end(), [](int channel) { return channel != 0; });
  const auto began = Clock::now();
  auto pause = std::chrono::duration_cast<std::chrono::microseconds>(kShortest);
  Events events;
  while (true) {
    test(events);
    const auto passed = Clock::now() - began;
    if (!events.done.empty() || passed > at_most) return events;
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
