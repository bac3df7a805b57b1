#include "comm/process/process_world.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <thread>

#include "comm/linked_transport.h"
#include "comm/process/message_transport.h"
#include "comm/process/rendezvous.h"

namespace braid {
namespace {

// How long a failing rank other than the first waits for the first to find and report the same.
constexpr auto kCourtesy = std::chrono::milliseconds(300);

std::unique_ptr<Wire> meet(const Launch& launch, const WorldOptions& options) {
  return launch.by_mpi ? meet_over_mpi(launch)
                       : meet_over_sockets(launch, options.meeting, options.warn);
}

// The same number for processes that may run on the same cores of the same host. Launchers that
// bind ranks to cores avoid this.
std::int64_t hash_of_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  ::sched_getaffinity(0, sizeof cores, &cores);
  std::string name(256, '\0');
  ::gethostname(name.data(), name.size() - 1);
  name.append(reinterpret_cast<const char*>(&cores), sizeof cores);
  return std::int64_t(std::hash<std::string_view>()(name));
}

// How the run, which `mine` ended, went for this rank.
Ending ending_of(const std::exception_ptr& mine) {
  if (!mine) return {};
  try {
    std::rethrow_exception(mine);
  } catch (const Cancelled& stop) {
    return {.kind = Ending::Kind::kCancelled, .sentence = stop.what()};
  } catch (const InputError& error) {
    return {.kind = Ending::Kind::kRefused, .sentence = error.what()};
  } catch (...) {
    return {.kind = Ending::Kind::kFailed, .sentence = message_of(mine)};
  }
}

// The first such rank is the culprit on all ranks.
bool failed_by_itself(const Ending& ending) {
  return ending.kind != Ending::Kind::kWell && ending.kind != Ending::Kind::kFollowed;
}

}  // namespace

ProcessWorld::ProcessWorld(const Launch& launch, const WorldOptions& options)
    : ProcessWorld(meet(launch, options), options.deadline,
                   {.make_link =
                        [&](const Group& world) {
                          const auto rank = std::size_t(world.rank());
                          const bool is_told = rank < options.devices.size();
                          return link_devices(world, is_told ? options.devices[rank] : at::kCPU);
                        },
                    .collectives = options.collectives,
                    .failure = options.failure}) {}

ProcessWorld::ProcessWorld(std::unique_ptr<Wire> wire, std::shared_ptr<Fate> fate,
                           const WorldStart& start)
    : fate_(std::move(fate)),
      progress_(std::make_shared<ProgressThread>(std::move(wire), fate_)),
      host_transport_(std::make_shared<MessageTransport>(progress_)),
      hosts_(host_transport_),
      group_(hosts_) {
  LinkedDevices linked;
  run([&](const Group& world) {
    if (start.failure) std::rethrow_exception(start.failure);
    const auto mine = hash_of_cores();
    const auto all = world.all_gather(at::full({1}, mine, at::kLong), 0);
    ranks_on_these_cores_ = all.eq(mine).sum().item<int>();
    check_same(world, at::full({1}, std::int64_t(start.collectives), at::kLong),
               "collectives (ordered or native)");
    if (start.make_link) linked = start.make_link(world);
    check_collectives(start.collectives, world.size(), linked);
  });
  if (group_.size() > 1) link_use_ = {.over = "hosts", .why_not = linked.why_not};
  if (!linked.link) return;
  link_use_ = {.over = device_link_name()};
  link_ = std::move(linked.link);
  progress_->on_failure([link = link_] { link->abort(); });
  group_ = Group(std::make_shared<LinkedTransport>(host_transport_, link_, start.collectives));
}

void ProcessWorld::run(const std::function<void(const Group& world)>& body, std::stop_token stop) {
  if (fate_->is_lost()) throw_loss();
  fate_->begin(std::move(stop));
  std::exception_ptr mine;
  try {
    enter(body);
  } catch (...) {
    mine = std::current_exception();
  }
  if (mine) drop_what_was_recorded();
  const auto endings = end_run(mine);
  const auto culprit = std::find_if(endings.begin(), endings.end(), failed_by_itself);
  if (culprit == endings.end()) return;
  drop_what_was_recorded();
  fate_->recover();
  end_with(int(culprit - endings.begin()), *culprit, mine);
}

void ProcessWorld::enter(const std::function<void(const Group& world)>& body) {
  const c10::InferenceMode no_autograd;
  progress_->begin_run();
  // Other ranks may be ahead and have failed. The first rank begins regardless: all ranks find
  // faults in the input, and the first one reports them.
  if (!has_first_rank()) fate_->check();
  renew_link();
  body(group_);
}

// An aborted link ends only when all graphs that recorded its messages are gone.
void ProcessWorld::drop_what_was_recorded() const {
  if (on_failed_run_) on_failed_run_(group_.rank());
}

// A failure has aborted the link on all ranks.
void ProcessWorld::renew_link() {
  if (!link_ || link_epoch_ == fate_->epoch()) return;
  link_->renew(hosts_);
  link_epoch_ = fate_->epoch();
}

// All ranks leave the run together unless one is lost.
std::vector<Ending> ProcessWorld::end_run(const std::exception_ptr& mine) {
  auto ending = ending_of(mine);
  ending.culprit = group_.rank();
  // Another rank's failure can look like many things, but not like bad input. It is passed on as
  // it was told here, since this rank's ending may reach a third one before the culprit's own.
  if (mine && fate_->failed() && ending.kind != Ending::Kind::kRefused)
    ending = {.kind = Ending::Kind::kFollowed,
              .culprit = fate_->culprit(),
              .sentence = message_of(fate_->cause())};
  if (mine && is_loss(mine) && !has_first_rank()) wait_for_loss(kCourtesy);
  if (mine) fate_->fail(group_.rank(), mine);
  if (fate_->is_lost()) end_lost();
  try {
    return progress_->end_run(ending);
  } catch (...) {  // a rank that cannot agree with the others is lost to them
    const auto why = message_of(std::current_exception());
    fate_->fail(group_.rank(), std::make_exception_ptr(WorldLost(why)));
  }
  end_lost();
}

void ProcessWorld::end_with(int culprit, const Ending& ending, const std::exception_ptr& mine) {
  const bool is_stop = ending.kind == Ending::Kind::kCancelled;
  if (culprit == group_.rank() && (has_first_rank() || is_stop)) std::rethrow_exception(mine);
  if (is_stop) throw Cancelled(ending.sentence);
  const bool is_refusal = ending.kind == Ending::Kind::kRefused;
  if (is_refusal && has_first_rank())
    throw InputError(text_of("rank ", culprit, ": ", ending.sentence));
  const auto all = text_of("rank ", culprit, " failed: ", ending.sentence);
  if (is_refusal) throw PeerRefused(all);
  throw PeerFailed(all);
}

// All ranks end with the first loss, and the first rank reports it. If it cannot, the second does.
void ProcessWorld::end_lost() {
  const auto [rank, cause] = fate_->loss();
  progress_->tell_loss(rank, cause);
  throw_loss();
}

void ProcessWorld::throw_loss() const {
  const auto [rank, cause] = fate_->loss();
  if (has_first_rank() && fate_->culprit() == 0) std::rethrow_exception(fate_->cause());
  const auto all = text_of("rank ", rank, " failed: ", message_of(cause));
  if (rank == 0 && group_.rank() == 1 && is_gone(cause)) throw Error(all);
  throw PeerFailed(all);
}

// What one rank finds wrong the others often find too, and the first rank's own exception has the
// right type.
void ProcessWorld::wait_for_loss(std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!fate_->is_lost() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace braid
