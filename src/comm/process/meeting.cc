#include "comm/process/meeting.h"

#include <future>
#include <thread>

#include "base/error.h"
#include "comm/process/sockets.h"

namespace braid {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenTries = 50ms;

struct TookTooLong {};

std::string key_of(const std::string& what) { return "braid/" + what; }

std::string text_in(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// LibTorch's messages go on with a stack.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

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

}  // namespace

std::string place_text(const Launch& launch) { return text_of(launch.host, " port ", launch.port); }

Meeting::Meeting(const Launch& launch, std::chrono::milliseconds patience)
    : launch_(launch), end_(std::chrono::steady_clock::now() + patience) {
  check_address();
  launch.rank > 0 || launch.has_server ? wait_for_server() : check_own_place();
  open_store();
}

void Meeting::tell(const std::string& what, const std::string& text) {
  store_->set(key_of(what), {text.begin(), text.end()});
}

std::string Meeting::ask(const std::string& what, int rank) {
  try {
    store_->wait({key_of(what)}, std::max(left(), 1ms));
    return text_in(store_->get(key_of(what)));
  } catch (const std::exception& e) {
    if (left() > kBetweenTries)
      fail(text_of("the store where they meet has failed: ", first_line(e.what())),
           launch_.size_variable);
    throw Error(text_of("rank ", rank, " of ", launch_.size, " did not come to ",
                        place_text(launch_), " in time", launch_advice(launch_.size_variable)));
  }
}

void Meeting::forget(const std::string& what) noexcept {
  try {
    store_->deleteKey(key_of(what));
  } catch (const std::exception&) {
  }
}

void Meeting::fail(const std::string& why, const std::string& variable) const {
  throw Error(text_of("rank ", launch_.rank, " of ", launch_.launcher,
                      " cannot meet the others at ", place_text(launch_), ": ", why,
                      launch_advice(variable)));
}

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
      if (left() <= kBetweenTries)
        fail(text_of("nobody answers there: ", error.what()), launch_.host_variable);
      std::this_thread::sleep_for(kBetweenTries);
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
    fail(first_line(e.what()), launch_.size_variable);
  }
}

}  // namespace braid
