#include "comm/process/rendezvous.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <sstream>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "base/random_bits.h"
#include "comm/process/socket_wire.h"
#include "comm/process/sockets.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLongWait = 3s;

struct TookTooLong {};

// The first bytes on a connection: strangers do not know the run's token.
struct Greeting {
  std::uint64_t token;
  std::int64_t rank;
};

std::string text_in(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// Runs `act` on a thread of its own, which is left behind if it takes longer than `patience`:
// LibTorch and the resolver cannot be interrupted. Throws what `act` throws.
template <class Act>
auto within(std::chrono::milliseconds patience, Act act) {
  using Result = decltype(act());
  std::packaged_task<Result()> task(std::move(act));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(patience) != std::future_status::ready) throw TookTooLong();
  return result.get();
}

// Tells people why nothing happens, unless it is gone before.
class Notice {
 public:
  Notice(std::chrono::milliseconds after, std::string sentence, const WarnOfWait& warn) {
    if (!warn) return;
    thread_ = std::jthread([=, this](const std::stop_token& gone) {
      std::unique_lock lock(mutex_);
      const bool is_gone = wakes_.wait_for(lock, gone, after, [] { return false; });
      if (!is_gone && !gone.stop_requested()) warn(sentence);
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any wakes_;
  std::jthread thread_;  // ends first
};

// What a wait or a failure to meet is about, for a sentence.
std::string place_text(const Launch& launch) { return text_of(launch.host, " port ", launch.port); }

// The information ranks exchange through the store at the given address.
class Meeting {
 public:
  Meeting(const Launch& launch, std::chrono::milliseconds patience)
      : launch_(launch), end_(Clock::now() + patience) {
    check_address();
    launch.rank > 0 || launch.has_server ? wait_for_server() : check_own_place();
    open_store();
  }

  void tell(const std::string& what, const std::string& text) {
    store_->set(key(what), {text.begin(), text.end()});
  }
  std::string ask(const std::string& what, int rank) {
    try {
      store_->wait({key(what)}, std::max(left(), std::chrono::milliseconds(1)));
      return text_in(store_->get(key(what)));
    } catch (const std::exception&) {
      throw Error(text_of("rank ", rank, " of ", launch_.size, " did not come to ",
                          place_text(launch_), " in time", launch_advice(launch_.size_variable)));
    }
  }
  std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
  }
  c10::intrusive_ptr<c10d::TCPStore> store() const { return store_; }

 private:
  [[noreturn]] void fail(const std::string& why, const std::string& variable) const {
    throw Error(text_of("rank ", launch_.rank, " of ", launch_.launcher,
                        " cannot meet the others at ", place_text(launch_), ": ", why,
                        launch_advice(variable)));
  }
  void check_address() const;
  void check_own_place() const;
  void wait_for_server() const;
  void open_store();

  static std::string key(const std::string& what) { return "braid/" + what; }

  const Launch& launch_;
  Clock::time_point end_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

void Meeting::check_address() const {
  try {
    within(left(), [host = launch_.host] {
      check_host(host);
      return true;
    });
  } catch (const TookTooLong&) {
    fail(text_of("the host that ", launch_.host_variable, " names was not found in time"),
         launch_.host_variable);
  } catch (const Error& error) {
    fail(text_of(error.what(), ", which ", launch_.host_variable, " names"), launch_.host_variable);
  }
}

// Listens and connects for a moment where the store is to be: LibTorch would not say which of the
// two failed, and print a log.
void Meeting::check_own_place() const {
  const auto listener = [&] {
    try {
      return listen_anywhere(launch_.port);
    } catch (const Error& error) {
      fail(text_of(error.what(), "; another program may have this port, and MASTER_PORT names ",
                   "another one"),
           launch_.size_variable);
    }
  }();
  try {
    (void)connect_to(launch_.host, launch_.port, left());
  } catch (const Error& error) {
    fail(text_of(launch_.host_variable, " should name the host of the first rank, which is this ",
                 "one and hears nothing under that name: ", error.what()),
         launch_.host_variable);
  }
}

// The first rank may start later than this one.
void Meeting::wait_for_server() const {
  for (;;) {
    try {
      (void)connect_to(launch_.host, launch_.port, left());
      return;
    } catch (const Error& error) {
      constexpr std::chrono::milliseconds kPause(50);
      if (left() <= kPause)
        fail(text_of("nobody answers there: ", error.what()), launch_.host_variable);
      std::this_thread::sleep_for(kPause);
    }
  }
}

void Meeting::open_store() {
  c10d::TCPStoreOptions options;
  options.port = std::uint16_t(launch_.port);
  options.isServer = launch_.rank == 0 && !launch_.has_server;
  options.numWorkers = std::size_t(launch_.size);
  options.waitWorkers = false;
  options.timeout = std::max(left(), std::chrono::milliseconds(1));
  try {
    store_ = within(left(), [host = launch_.host, options] {
      return c10::make_intrusive<c10d::TCPStore>(host, options);
    });
  } catch (const TookTooLong&) {
    fail(
        "something listens there, but does not answer like a first rank: MASTER_PORT may be "
        "that of another program",
        launch_.size_variable);
  } catch (const std::exception& e) {
    const std::string why = e.what();
    fail(why.substr(0, why.find('\n')), launch_.size_variable);
  }
}

// Where a rank listens, as "port address address ...".
std::string place_of(const Launch& launch, const Listener& listener) {
  auto place = std::to_string(listener.port);
  for (const auto& address : addresses_towards(launch.host)) place += ' ' + address;
  return place;
}

// Loopback addresses are tried only if the meeting point is local too.
Socket connect_to_rank(int rank, const std::string& place, bool is_local) {
  std::istringstream words(place);
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
  throw Error(text_of("rank ", rank, " cannot be reached: ", why));
}

// Accepts the ranks above this one in any order; strangers are rejected.
void accept_higher_ranks(const Launch& launch, const Meeting& meeting, const Listener& listener,
                         std::uint64_t token, std::vector<Socket>& sockets) {
  int missing = launch.size - 1 - launch.rank;
  while (missing > 0) {
    auto socket = accept_next(listener, meeting.left());
    check(socket.is_open(), "rank ", launch.rank, " waited in vain for ", missing,
          missing == 1 ? " other rank" : " other ranks", " to connect to ", place_text(launch),
          launch_advice(launch.size_variable));
    Greeting greeting{};
    try {
      receive_all(socket, &greeting, sizeof greeting);
    } catch (const Error&) {
      continue;
    }
    const bool is_known = greeting.token == token && greeting.rank > launch.rank &&
                          greeting.rank < launch.size &&
                          !sockets[std::size_t(greeting.rank)].is_open();
    if (!is_known) continue;
    sockets[std::size_t(greeting.rank)] = std::move(socket);
    --missing;
  }
}

// Keeps the store's server alive until the last rank has left: destroyed after the wire.
class MetWire : public SocketWire {
 public:
  MetWire(int rank, const std::vector<int>& sockets, c10::intrusive_ptr<c10d::TCPStore> store)
      : SocketWire(rank, sockets), store_(std::move(store)) {}

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

std::atomic<bool> have_met = false;

}  // namespace

bool have_met_over_sockets() { return have_met; }

std::unique_ptr<Wire> meet_over_sockets(const Launch& launch, std::chrono::milliseconds patience,
                                        const WarnOfWait& warn) {
  have_met = true;
  const Notice notice(std::min(kLongWait, patience / 2),
                      text_of("rank ", launch.rank, " waits at ", place_text(launch), " for the ",
                              launch.size, " ranks that ", launch.size_variable, " tells of",
                              launch_advice(launch.size_variable)),
                      warn);
  Meeting meeting(launch, patience);
  const auto listener = listen_anywhere();
  const auto place = place_of(launch, listener);
  if (launch.rank == 0) meeting.tell("token", std::to_string(random_bits()));
  meeting.tell(text_of("rank ", launch.rank), place);
  const Greeting greeting{.token = std::stoull(meeting.ask("token", 0)), .rank = launch.rank};

  const bool is_local = is_loopback(addresses_towards(launch.host).front());
  std::vector<Socket> sockets(std::size_t(launch.size));
  for (int r = 0; r < launch.rank; ++r) {
    auto& socket = sockets[std::size_t(r)];
    socket = connect_to_rank(r, meeting.ask(text_of("rank ", r), r), is_local);
    send_all(socket, &greeting, sizeof greeting);
  }
  accept_higher_ranks(launch, meeting, listener, greeting.token, sockets);
  std::vector<int> files;
  for (auto& socket : sockets) files.push_back(socket.release());
  return std::make_unique<MetWire>(launch.rank, files, meeting.store());
}

}  // namespace braid
