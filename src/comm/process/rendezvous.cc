#include "comm/process/rendezvous.h"

#include <random>
#include <sstream>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "comm/process/socket_wire.h"
#include "comm/process/sockets.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

// The first bytes on a connection: strangers do not know the run's token.
struct Greeting {
  std::uint64_t token;
  std::int64_t rank;
};

std::string text_in(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// The information ranks exchange through the store at the given address.
class Meeting {
 public:
  Meeting(const Launch& launch, std::chrono::milliseconds patience)
      : launch_(launch), end_(Clock::now() + patience) {
    c10d::TCPStoreOptions options;
    options.port = std::uint16_t(launch.port);
    options.isServer = launch.rank == 0 && !launch.has_server;
    options.numWorkers = std::size_t(launch.size);
    options.waitWorkers = false;
    options.timeout = patience;
    try {
      store_ = c10::make_intrusive<c10d::TCPStore>(launch.host, options);
    } catch (const std::exception& e) {
      const std::string why = e.what();
      throw Error(text_of("rank ", launch.rank, " of ", launch.launcher, " cannot meet the others ",
                          "at ", launch.host, " port ", launch.port, ": ",
                          why.substr(0, why.find('\n'))));
    }
  }

  void tell(const std::string& what, const std::string& text) {
    store_->set(key(what), {text.begin(), text.end()});
  }
  std::string ask(const std::string& what, int rank) {
    try {
      store_->wait({key(what)}, std::max(left(), std::chrono::milliseconds(1)));
      return text_in(store_->get(key(what)));
    } catch (const std::exception&) {
      throw Error(text_of("rank ", rank, " of ", launch_.size, " did not come to ", launch_.host,
                          " port ", launch_.port, " in time"));
    }
  }
  std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
  }
  c10::intrusive_ptr<c10d::TCPStore> store() const { return store_; }

 private:
  static std::string key(const std::string& what) { return "braid/" + what; }

  const Launch& launch_;
  Clock::time_point end_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

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
          " other ranks to connect");
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

}  // namespace

std::unique_ptr<Wire> meet_over_sockets(const Launch& launch, std::chrono::milliseconds patience) {
  Meeting meeting(launch, patience);
  const auto listener = listen_anywhere();
  const auto place = place_of(launch, listener);
  if (launch.rank == 0) {
    std::random_device random;
    meeting.tell("token", std::to_string((std::uint64_t(random()) << 32) | random()));
  }
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
