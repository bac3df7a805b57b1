// GPU kernels on the host, linked instead of gpu.cu: the threads of a block are fibers. The first
// runnable one runs until it needs the others, so warps drift as far apart as possible. Values read
// too early or overwritten too soon then show.
#define BRAID_DEVICE
#include <c10/util/Half.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernel_device.h"
#include "ops/gpu/architectures.h"
#include "ops/gpu/blocks.h"
#include "ops/gpu/codes.h"
#include "ops/gpu/heads.h"
#include "ops/gpu/stream.h"
#include "ops/gpu/sums.h"
#include "ops/gpu/tokens.h"
#include "ops/gpu/types.h"

namespace braid {

namespace {

std::int64_t most_blocks = INT64_MAX;

}  // namespace

OnLaunch on_launch = nullptr;

std::optional<at::Device> kernel_device() { return at::kCPU; }

LastBlocksOnly::LastBlocksOnly(std::int64_t count) { most_blocks = count; }
LastBlocksOnly::~LastBlocksOnly() { most_blocks = INT64_MAX; }

namespace ops::gpu {

float half_to_float(std::uint16_t bits) { return c10::Half(bits, c10::Half::from_bits()); }
std::uint16_t float_to_half(float x) { return c10::Half(x).x; }
std::uint16_t float_to_bfloat(float x) { return bfloat_by_bits(x); }
// Errs as far as a device may.
float rough_exponential(float x) { return std::exp(x) * (1 + 0x1p-17f); }
float rough_quotient(float x, float y) { return x / y * (1 + 0x1p-20f); }

void* current_stream(at::Device) { return nullptr; }

// Those of the simulated GPUs of tests/device, and no later ones.
std::string compiled_architectures() { return "80-real,86-real,90-real"; }

namespace {

// Fibers on one host thread, and meetings of some of them. A fiber that meets nobody runs to its
// end on the previous one's stack: a switch costs as much as two kernel calls.
class Fibers {
 public:
  explicit Fibers(int count) : threads_(std::size_t(count)) {}

  void run(std::function<void(int)> body) {
    body_ = std::move(body);
    for (auto& thread : threads_) thread.state = State::kNew;
    first_ = 0;
    leave_for_next(main_);
    for (const auto& thread : threads_)
      check(thread.state == State::kDone, "a thread waits for others that have ended");
  }

  // Returns once threads [begin, begin + count), including the running one, have all arrived.
  void meet(int begin, int count) {
    auto& mine = threads_[std::size_t(now_)];
    mine.state = State::kWaiting;
    mine.with = count;
    const auto has_come = [&](const Thread& t) {
      return t.state == State::kWaiting && t.with == count;
    };
    const auto first = threads_.begin() + begin, end = first + count;
    if (std::all_of(std::make_reverse_iterator(end), std::make_reverse_iterator(first), has_come)) {
      std::for_each(first, end, [](Thread& t) { t.state = State::kReady; });
      first_ = std::min(first_, begin);
    }
    leave_for_next(mine.context);
  }

 private:
  static constexpr std::size_t kStack = 64 << 10;
  enum class State { kNew, kReady, kRunning, kWaiting, kDone };
  struct Thread {
    State state = State::kNew;
    int with = 0;
    ucontext_t context = {};  // where it waits
  };

  // Makes the first runnable thread the current one; false if there is none.
  bool choose_next() {
    const auto can_go_on = [](const Thread& t) {
      return t.state == State::kNew || t.state == State::kReady;
    };
    const auto next = std::find_if(threads_.begin() + first_, threads_.end(), can_go_on);
    now_ = first_ = int(next - threads_.begin());
    return next != threads_.end();
  }

  // Returns when `here` is resumed.
  void leave_for_next(ucontext_t& here) {
    auto* const next = choose_next() ? context_of_next() : &main_;
    if (next != &here) swapcontext(&here, next);
  }

  ucontext_t* context_of_next() {
    auto& thread = threads_[std::size_t(now_)];
    const bool is_new = std::exchange(thread.state, State::kRunning) == State::kNew;
    if (is_new) prepare(thread.context);
    return &thread.context;
  }

  void prepare(ucontext_t& context) {
    if (free_stacks_.empty()) {
      stacks_.emplace_back(new char[kStack]);
      free_stacks_.push_back(stacks_.back().get());
    }
    getcontext(&context);
    context.uc_stack.ss_sp = free_stacks_.back();
    context.uc_stack.ss_size = kStack;
    context.uc_link = &main_;
    free_stacks_.pop_back();
    const auto self = reinterpret_cast<std::uintptr_t>(this);  // makecontext passes ints only
    makecontext(&context, reinterpret_cast<void (*)()>(&Fibers::start), 2, int(self >> 32),
                int(self));
  }
  static void start(int high, int low) {
    const auto bits = std::uint64_t(std::uint32_t(high)) << 32 | std::uint32_t(low);
    reinterpret_cast<Fibers*>(bits)->run_new_ones();
  }
  void run_new_ones() {
    auto* const stack = static_cast<char*>(threads_[std::size_t(now_)].context.uc_stack.ss_sp);
    bool goes_on = true;
    while (goes_on) {
      auto& mine = threads_[std::size_t(now_)];
      mine.state = State::kRunning;
      body_(now_);
      mine.state = State::kDone;
      goes_on = choose_next() && threads_[std::size_t(now_)].state == State::kNew;
    }
    free_stacks_.push_back(stack);  // not reused before it is left
    setcontext(std::size_t(now_) < threads_.size() ? context_of_next() : &main_);
  }

  std::function<void(int)> body_;
  std::vector<Thread> threads_;
  std::vector<std::unique_ptr<char[]>> stacks_;
  std::vector<char*> free_stacks_;
  ucontext_t main_;
  int now_ = 0, first_ = 0;  // first_: none before it is runnable
};

// State shared by the threads of a block.
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
const void* overwritten_by(const Work&) {
  return nullptr;
}
const void* overwritten_by(const Widen& work) { return work.y; }

template <class Work>
void tell(const Work& work) {
  if (!on_launch) return;
  std::array<const void*, sizeof(Work) / sizeof(void*)> words;
  std::memcpy(words.data(), &work, words.size() * sizeof(void*));
  on_launch(words, overwritten_by(work));
}

template <class Work>
void start(const Work& work, const Launch& how) {
  tell(work);
  check(how.threads > 0 && how.threads <= kMostThreads<Work> && how.threads % kLanes == 0 &&
            how.rows > 0 && how.parts > 0,
        "a launch of ", how.rows, " rows, ", how.parts, " parts and ", how.threads, " threads");
  visit_types<Work>(how, [&](auto types) {
    using Types = decltype(types);
    const auto count = how.rows * how.parts;
    Fibers fibers(how.threads);
    for (auto i = std::max<std::int64_t>(0, count - most_blocks); i < count; ++i) {
      SharedState shared;
      shared.fibers = &fibers;
      shared.exchanged.resize(std::size_t(how.threads));
      fibers.run([&](int thread) {
        HostBlock block{shared, thread, std::uint32_t(i / how.parts), std::uint32_t(i % how.parts)};
        run<typename Types::Element, Types::kVector>(work, block);
      });
    }
  });
}

}  // namespace

void launch(const ModulatedNorm& work, const Launch& how) { start(work, how); }
void launch(const GatedResidual& work, const Launch& how) { start(work, how); }
void launch(const GatedResidualNorm& work, const Launch& how) { start(work, how); }
void launch(const AddParts& work, const Launch& how) { start(work, how); }
void launch(const JoinedGelu& work, const Launch& how) { start(work, how); }
void launch(const JoinedGeluCodes& work, const Launch& how) { start(work, how); }
void launch(const NormRotate& work, const Launch& how) { start(work, how); }
void launch(const QuantizeRows& work, const Launch& how) { start(work, how); }
void launch(const Widen& work, const Launch& how) { start(work, how); }
void launch(const ScaleSums& work, const Launch& how) { start(work, how); }
void launch(const DecodeRows& work, const Launch& how) { start(work, how); }
void launch(const EulerStep& work, const Launch& how) { start(work, how); }

}  // namespace ops::gpu
}  // namespace braid
