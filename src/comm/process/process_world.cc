#include "comm/process/process_world.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <sched.h>
#include <unistd.h>

#include <string_view>
#include <thread>

#include "comm/process/message_transport.h"
#include "comm/process/rendezvous.h"

namespace braid {
namespace {

constexpr std::chrono::milliseconds kMeeting = std::chrono::minutes(1);
// How long a rank after the first waits, when it fails, for the first to find the same and say so.
constexpr auto kCourtesy = std::chrono::milliseconds(300);

std::unique_ptr<Wire> meet(const Launch& launch, std::chrono::milliseconds deadline) {
  return launch.by_mpi ? meet_over_mpi(launch)
                       : meet_over_sockets(launch, std::max(kMeeting, deadline));
}

// The same number for processes that may run on the same cores of the same host, which launchers
// that bind ranks to cores avoid.
std::int64_t hash_of_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  std::string name(256, '\0');
  ::gethostname(name.data(), name.size() - 1);
  name.append(reinterpret_cast<const char*>(&cores), sizeof cores);
  return std::int64_t(std::hash<std::string_view>()(name));
}

}  // namespace

ProcessWorld::ProcessWorld(const Launch& launch, std::chrono::milliseconds deadline,
                           at::Device device)
    : ProcessWorld(meet(launch, deadline), deadline, device) {}

ProcessWorld::ProcessWorld(std::unique_ptr<Wire> wire, std::chrono::milliseconds deadline,
                           at::Device device)
    : fate_(std::make_shared<Fate>(deadline)),
      courier_(std::make_shared<Courier>(std::move(wire), fate_)),
      group_(std::make_shared<MessageTransport>(courier_)) {
  std::shared_ptr<DeviceLink> link;
  run([&](const Group& world) {
    const auto mine = hash_of_cores();
    const auto all = world.all_gather(at::full({1}, mine, at::kLong), 0);
    ranks_on_these_cores_ = all.eq(mine).sum().item<int>();
    link = make_device_link(world, device);
  });
  if (!link) return;
  courier_->on_failure([link] { link->abort(); });
  group_ = Group(std::make_shared<MessageTransport>(courier_, link));
}

void ProcessWorld::run(const std::function<void(const Group& world)>& body) {
  fate_->check();
  const c10::InferenceMode no_autograd;
  try {
    body(group_);
    group_.await();
  } catch (const AgreedStop&) {
    throw;
  } catch (...) {
    fail();
  }
}

// All end with the failure that came first. Ranks after the first one throw PeerFailed for their
// own too: the first rank says it for them.
void ProcessWorld::fail() {
  const auto mine = std::current_exception();
  if (!fate_->failed() && !has_first_rank()) wait_for_failure(kCourtesy);
  if (!fate_->failed()) {
    courier_->tell_failure(group_.rank(), mine);
    fate_->fail(group_.rank(), mine);
    if (has_first_rank()) std::rethrow_exception(mine);
  }
  const auto first = fate_->cause();
  const auto all = text_of("rank ", fate_->culprit(), " failed: ", message_of(first));
  courier_->tell_failure(fate_->culprit(), first);
  // The first rank speaks for all. The second one does where the first cannot.
  if (fate_->culprit() == 0 && group_.rank() == 1 && is_gone(first)) throw Error(all);
  throw PeerFailed(all);
}

// What one rank finds wrong the others often find too: the first rank's own word has the right
// type.
void ProcessWorld::wait_for_failure(std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!fate_->failed() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace braid
