#include "comm/device/nccl_communicator.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <condition_variable>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.h"
#include "comm/group.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

// What hangs or fails only where GPUs reach each other directly.
constexpr const char* kHint =
    "; on boards whose GPUs cannot reach each other directly, as with many Radeon and GeForce "
    "cards, NCCL_P2P_DISABLE=1 helps";

// ncclDataType_t. There is none for bool, whose sum is `or`.
std::optional<int> type_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kByte:
      return Nccl::kUint8;
    case at::kChar:
      return Nccl::kInt8;
    case at::kInt:
      return Nccl::kInt32;
    case at::kLong:
      return Nccl::kInt64;
    case at::kHalf:
      return Nccl::kFloat16;
    case at::kFloat:
      return Nccl::kFloat32;
    case at::kDouble:
      return Nccl::kFloat64;
    case at::kBFloat16:
      return Nccl::kBfloat16;
    default:
      return std::nullopt;
  }
}

// Waits in short steps, the first of which cost nothing.
class Pause {
 public:
  void operator()() {
    if (Clock::now() - begin_ < std::chrono::milliseconds(1)) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  bool is_longer_than(std::chrono::milliseconds time) const { return Clock::now() - begin_ > time; }

 private:
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

// Shared with the threads that start and end it, which nobody waits for longer than it is worth.
struct NcclCommunicator::Connection : std::enable_shared_from_this<Connection> {
  explicit Connection(const Nccl& functions) : nccl(functions) {}

  // Some libraries block in this call until all ranks are there.
  void start(int size, const Nccl::Id& id, int rank, at::Device device) {
    std::thread([self = shared_from_this(), size, id, rank, device] {
      Nccl::Communicator* made = nullptr;
      int code = Nccl::kInProgress;
      std::exception_ptr failure;
      try {
        const c10::DeviceGuard on(device);
        Nccl::Config config;
        code = self->nccl.comm_init_rank_config(&made, size, id, rank, &config);
      } catch (...) {
        failure = std::current_exception();
      }
      std::unique_lock lock(self->mutex);
      self->communicator = made;
      self->code_of_start = code;
      self->failure_of_start = failure;
      self->is_started = true;
      const bool is_aborted = self->is_aborted;
      lock.unlock();
      if (is_aborted) self->end();
    }).detach();
  }

  // A communicator is in progress as long as its own threads work on what was asked last.
  int state() {
    const std::scoped_lock lock(mutex);
    check_alive();
    if (!is_started) return Nccl::kInProgress;
    if (failure_of_start) std::rethrow_exception(failure_of_start);
    if (code_of_start != Nccl::kSuccess && code_of_start != Nccl::kInProgress) return code_of_start;
    int code = Nccl::kSuccess;
    const int asked = nccl.comm_get_async_error(communicator, &code);
    return asked == Nccl::kSuccess ? code : asked;
  }

  // Requires the lock.
  void check_alive() const { check(!is_aborted, "the link between the devices has failed"); }

  void must(int code, const char* what) const {
    if (code == Nccl::kSuccess || code == Nccl::kInProgress) return;
    const std::string more = nccl.get_last_error(nullptr);
    throw Error(
        text_of(what, ": ", nccl.get_error_string(code), more.empty() ? "" : ", ", more, kHint));
  }

  // Throws WorldLost if NCCL's threads are not done in time.
  template <class Poll>
  void wait_until_ready(const char* what, std::chrono::milliseconds patience, Poll poll) {
    Pause pause;
    for (int code = state(); code != Nccl::kSuccess; code = state()) {
      must(code, what);
      poll();
      if (pause.is_longer_than(patience))
        throw WorldLost(text_of(what, " took longer than ", in_seconds(patience), " s", kHint));
      pause();
    }
  }

  void abort() noexcept {
    try {
      const std::scoped_lock lock(mutex);
      if (std::exchange(is_aborted, true) || !is_started) return;
      std::thread([self = shared_from_this()] { self->end(); }).detach();
    } catch (const std::exception&) {
      // no thread can be had: what it holds stays until the process ends
    }
  }
  void end() {
    std::unique_lock lock(mutex);
    auto* const ending = std::exchange(communicator, nullptr);
    lock.unlock();
    if (ending) nccl.comm_abort(ending);
    lock.lock();
    is_gone = true;
    changed.notify_all();
  }
  // Or given up: what never started has nothing to end, and ends itself should it start after all.
  bool is_over_within(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, time, [&] { return is_gone || !is_started; });
  }

  Nccl nccl;
  std::mutex mutex;
  std::condition_variable changed;
  Nccl::Communicator* communicator = nullptr;  // until its end begins
  int code_of_start = Nccl::kInProgress;
  std::exception_ptr failure_of_start;  // as of a device that cannot be used
  bool is_started = false;              // the call that starts it has returned
  bool is_aborted = false, is_gone = false;
};

std::shared_ptr<NcclCommunicator::Connection> NcclCommunicator::connection() const {
  const std::scoped_lock lock(mutex_);
  return connection_;
}

// What still holds it by then, such as a graph that outlives its world, must not keep the process.
NcclCommunicator::~NcclCommunicator() {
  abort();
  if (const auto last = connection()) (void)last->is_over_within(std::chrono::seconds(10));
}

void NcclCommunicator::abort() noexcept {
  if (const auto current = connection()) current->abort();
}

void NcclCommunicator::end(const Group& group) {
  const auto last = connection();
  if (!last) return;
  last->abort();
  for (const Pause pause; !last->is_over_within(kGlance);) {
    group.poll();
    if (pause.is_longer_than(patience_))
      throw WorldLost(text_of("the link between the devices did not end within ",
                              in_seconds(patience_), " s: a recorded graph still uses it"));
  }
}

void NcclCommunicator::connect(const Group& group) {
  end(group);
  auto next = std::make_shared<Connection>(nccl_);
  {
    const std::scoped_lock lock(mutex_);
    connection_ = next;
  }
  try {
    start(group, next);
  } catch (...) {
    next->abort();
    throw;
  }
}

void NcclCommunicator::start(const Group& group, const std::shared_ptr<Connection>& next) {
  Nccl::Id id{};
  if (group.rank() == 0) next->must(nccl_.get_unique_id(&id), "ncclGetUniqueId");
  auto bytes = at::empty({sizeof id}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), &id, sizeof id);
  group.await();  // finding network cards may take the first rank a while
  bytes = group.broadcast(bytes, 0);
  std::memcpy(&id, bytes.const_data_ptr(), sizeof id);
  next->start(group.size(), id, group.rank(), device_);
  next->wait_until_ready("connecting the devices (ncclCommInitRankConfig)", patience_,
                         [&] { group.poll(); });
}

template <class Ask>
void NcclCommunicator::put(const char* what, Ask ask) {
  const auto current = connection();
  check(current != nullptr, "the link between the devices is not connected");
  {
    const std::scoped_lock lock(current->mutex);  // none of these calls blocks
    current->check_alive();
    current->must(nccl_.group_start(), "ncclGroupStart");
    int code = Nccl::kSuccess;
    const auto note = [&](int next) {
      if (code == Nccl::kSuccess || code == Nccl::kInProgress) code = next;
    };
    ask(current->communicator, note);
    note(nccl_.group_end());  // also after a failure, as this thread's group is open
    current->must(code, what);
  }
  current->wait_until_ready(what, patience_, [] {});
}

void NcclCommunicator::exchange(const Messages& sends, const Messages& receives, void* stream) {
  const auto size_of = [](const Tensor& x) { return std::size_t(x.numel()) * x.element_size(); };
  put("sending between devices", [&](Nccl::Communicator* to, const auto& note) {
    for (const auto& [peer, x] : sends)
      note(nccl_.send(x.const_data_ptr(), size_of(x), Nccl::kInt8, peer, to, stream));
    for (const auto& [peer, x] : receives)
      note(nccl_.recv(x.mutable_data_ptr(), size_of(x), Nccl::kInt8, peer, to, stream));
  });
}

bool NcclCommunicator::can_sum(at::ScalarType dtype) { return type_of(dtype).has_value(); }

void NcclCommunicator::all_reduce(const Sums& sums, void* stream) {
  put("summing over devices", [&](Nccl::Communicator* over, const auto& note) {
    for (const auto& [x, result] : sums)
      note(nccl_.all_reduce(x.const_data_ptr(), result.mutable_data_ptr(), std::size_t(x.numel()),
                            type_of(x.scalar_type()).value(), Nccl::kSum, over, stream));
  });
}

}  // namespace braid
