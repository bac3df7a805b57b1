// The kernels for GPUs on the host, linked in the place of gpu.cu: the threads of a block are
// fibers. The first that can go on runs until it needs the others, so that warps drift as far apart
// as they may, and what is read too early or overwritten too soon shows.
#define BRAID_DEVICE
#include <c10/util/Half.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "kernel_device.h"
#include "ops/gpu/codes.h"
#include "ops/gpu/heads.h"
#include "ops/gpu/stream.h"
#include "ops/gpu/tokens.h"
#include "ops/gpu/types.h"

namespace braid {

namespace {

std::int64_t most_blocks = INT64_MAX;

}  // namespace

std::optional<at::Device> kernel_device() { return at::kCPU; }

LastBlocksOnly::LastBlocksOnly(std::int64_t count) { most_blocks = count; }
LastBlocksOnly::~LastBlocksOnly() { most_blocks = INT64_MAX; }

namespace ops::gpu {

float half_to_float(std::uint16_t bits) { return c10::Half(bits, c10::Half::from_bits()); }
std::uint16_t float_to_half(float x) { return c10::Half(x).x; }

void* current_stream(at::Device) { return nullptr; }

namespace {

// Fibers, and meetings of some of them.
class Fibers {
 public:
  Fibers(int count, std::function<void(int)> body)
      : body_(std::move(body)), stacks_(new char[std::size_t(count) * kStack]) {
    fibers_.resize(std::size_t(count));
    for (int i = 0; i < count; ++i) prepare(i);
  }

  void run() {
    for (;;) {
      const auto next = std::find_if(fibers_.begin(), fibers_.end(),
                                     [](const Fiber& f) { return f.state == State::kReady; });
      if (next == fibers_.end()) break;
      now_ = int(next - fibers_.begin());
      swapcontext(&main_, &next->context);
    }
    for (const auto& fiber : fibers_)
      check(fiber.state == State::kDone, "a thread waits for others that have ended");
  }

  // Returns when fibers [begin, begin + count), of which the running one is one, have all come.
  void meet(int begin, int count) {
    auto& mine = fibers_[std::size_t(now_)];
    mine.state = State::kWaiting;
    mine.with = count;
    const auto first = fibers_.begin() + begin;
    const bool are_here = std::all_of(first, first + count, [&](const Fiber& f) {
      return f.state == State::kWaiting && f.with == count;
    });
    if (are_here) std::for_each(first, first + count, [](Fiber& f) { f.state = State::kReady; });
    swapcontext(&mine.context, &main_);
  }

 private:
  static constexpr std::size_t kStack = 64 << 10;
  enum class State { kReady, kWaiting, kDone };
  struct Fiber {
    ucontext_t context;
    State state = State::kReady;
    int with = 0;
  };

  void prepare(int i) {
    auto& fiber = fibers_[std::size_t(i)];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks_.get() + std::size_t(i) * kStack;
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = &main_;
    const auto self = reinterpret_cast<std::uintptr_t>(this);  // makecontext passes ints only
    makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Fibers::start), 2, int(self >> 32),
                int(self));
  }
  static void start(int high, int low) {
    const auto bits = std::uint64_t(std::uint32_t(high)) << 32 | std::uint32_t(low);
    auto& self = *reinterpret_cast<Fibers*>(bits);
    self.body_(self.now_);
    self.fibers_[std::size_t(self.now_)].state = State::kDone;
  }

  std::function<void(int)> body_;
  std::unique_ptr<char[]> stacks_;
  std::vector<Fiber> fibers_;
  ucontext_t main_;
  int now_ = 0;
};

// What the threads of a block share.
struct SharedState {
  Fibers* fibers = nullptr;
  std::vector<float> exchanged, cells = std::vector<float>(kLanes);
};

struct HostBlock {
  int thread() const { return thread_; }
  int size() const { return int(shared_.exchanged.size()); }
  std::uint32_t row() const { return row_; }
  std::uint32_t part() const { return part_; }
  float& shared(int i) { return shared_.cells.at(std::size_t(i)); }
  void sync() { shared_.fibers->meet(0, size()); }
  float shuffle_xor(float x, int mask) {
    const int warp = thread_ / kLanes * kLanes;
    shared_.exchanged[std::size_t(thread_)] = x;
    shared_.fibers->meet(warp, kLanes);
    const float y = shared_.exchanged.at(std::size_t(thread_ ^ mask));
    shared_.fibers->meet(warp, kLanes);
    return y;
  }

  SharedState& shared_;
  int thread_;
  std::uint32_t row_, part_;
};

template <class Work>
void start(const Work& work, const Launch& how) {
  check(how.threads > 0 && how.threads <= kMostThreads<Work> && how.threads % kLanes == 0 &&
            how.rows > 0 && how.parts > 0,
        "a launch of ", how.rows, " rows, ", how.parts, " parts and ", how.threads, " threads");
  visit_types<Work>(how, [&](auto types) {
    using Types = decltype(types);
    const auto count = how.rows * how.parts;
    for (auto i = std::max<std::int64_t>(0, count - most_blocks); i < count; ++i) {
      SharedState shared;
      shared.exchanged.resize(std::size_t(how.threads));
      Fibers fibers(how.threads, [&](int thread) {
        HostBlock block{shared, thread, std::uint32_t(i / how.parts), std::uint32_t(i % how.parts)};
        run<typename Types::Element, Types::kVector>(work, block);
      });
      shared.fibers = &fibers;
      fibers.run();
    }
  });
}

}  // namespace

void launch(const ModulatedNorm& work, const Launch& how) { start(work, how); }
void launch(const GatedResidual& work, const Launch& how) { start(work, how); }
void launch(const JoinedGelu& work, const Launch& how) { start(work, how); }
void launch(const NormRotate& work, const Launch& how) { start(work, how); }
void launch(const QuantizeRows& work, const Launch& how) { start(work, how); }
void launch(const Widen& work, const Launch& how) { start(work, how); }
void launch(const ScaleSums& work, const Launch& how) { start(work, how); }
void launch(const EulerStep& work, const Launch& how) { start(work, how); }

}  // namespace ops::gpu
}  // namespace braid
