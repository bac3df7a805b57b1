#include "fake_order.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>

namespace braid::fake_gpu {
namespace {

constexpr std::size_t kMostStreams = 64, kHost = kMostStreams;
using Clock = std::array<std::uint64_t, kMostStreams + 1>;

struct Access {
  std::size_t stream;
  std::uint64_t time;
};
struct Block {
  std::size_t bytes, owner;
  Access written;
  std::map<std::size_t, Access> read;  // the last, by stream
};

struct State {
  std::map<std::pair<int, c10::StreamId>, std::size_t> streams;
  std::array<Clock, kMostStreams + 1> clocks{};
  std::map<const void*, Clock> events;
  std::map<const std::byte*, Block> blocks;
  std::map<std::size_t, std::vector<Access>> freed;  // accesses by other streams, by owner
  std::vector<std::string> complaints, log;

  std::size_t number_of(const c10::Stream& stream) {
    return streams.try_emplace({stream.device_index(), stream.id()}, streams.size()).first->second;
  }
  // The stream's next work comes after all the host knows of.
  Access step(std::size_t stream) {
    join(clocks.at(stream), clocks[kHost]);
    return {stream, ++clocks.at(stream).at(stream)};
  }
  static void join(Clock& clock, const Clock& other) {
    for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other[i]);
  }
  bool is_ordered(const Access& before, std::size_t stream) const {
    return clocks.at(stream).at(before.stream) >= before.time;
  }
  void depend(const Access& before, const Access& now, const std::string& what) {
    if (is_ordered(before, now.stream)) return;
    complaints.push_back("stream " + std::to_string(now.stream) + " " + what + " stream " +
                         std::to_string(before.stream));
  }
  Block* block_of(const void* memory) {
    const auto* const address = static_cast<const std::byte*>(memory);
    auto next = blocks.upper_bound(address);
    if (next == blocks.begin()) return nullptr;
    auto& [begin, block] = *--next;
    return address < begin + block.bytes ? &block : nullptr;
  }
  void note(const char* what, const c10::Stream& stream) {
    log.push_back(std::string(what) + " " + std::to_string(stream.id()));
  }
};

std::mutex order_mutex;
std::optional<State> state;

}  // namespace

OrderOfWork::OrderOfWork() {
  const std::scoped_lock lock(order_mutex);
  state.emplace();
}
OrderOfWork::~OrderOfWork() {
  const std::scoped_lock lock(order_mutex);
  state.reset();
}
std::vector<std::string> OrderOfWork::complaints() const {
  const std::scoped_lock lock(order_mutex);
  return state->complaints;
}
std::vector<std::string> OrderOfWork::log() const {
  const std::scoped_lock lock(order_mutex);
  return state->log;
}

void order::allocate(const void* memory, std::size_t bytes, const c10::Stream& stream) {
  const std::scoped_lock lock(order_mutex);
  if (!state || bytes == 0) return;
  const auto owner = state->number_of(stream);
  const auto now = state->step(owner);
  for (const auto& access : state->freed[owner])
    state->depend(access, now, "is given memory that may still be used by");
  state->freed[owner].clear();
  state->blocks[static_cast<const std::byte*>(memory)] = {bytes, owner, now, {}};
}

void order::free(const void* memory) {
  const std::scoped_lock lock(order_mutex);
  if (!state) return;
  const auto found = state->blocks.find(static_cast<const std::byte*>(memory));
  if (found == state->blocks.end()) return;
  const auto& block = found->second;
  auto& freed = state->freed[block.owner];
  if (block.written.stream != block.owner) freed.push_back(block.written);
  for (const auto& [stream, access] : block.read)
    if (stream != block.owner) freed.push_back(access);
  state->blocks.erase(found);
}

void order::record(const void* event, const c10::Stream& stream) {
  const std::scoped_lock lock(order_mutex);
  if (!state) return;
  const auto number = state->number_of(stream);
  (void)state->step(number);
  state->events[event] = state->clocks.at(number);
  state->note("record", stream);
}

void order::wait(const void* event, const c10::Stream& stream) {
  const std::scoped_lock lock(order_mutex);
  if (!state) return;
  const auto number = state->number_of(stream);
  (void)state->step(number);
  if (const auto known = state->events.find(event); known != state->events.end())
    State::join(state->clocks.at(number), known->second);
  state->note("wait", stream);
}

void order::host_waits(const void* event) {
  const std::scoped_lock lock(order_mutex);
  if (!state) return;
  if (const auto known = state->events.find(event); known != state->events.end())
    State::join(state->clocks[kHost], known->second);
}

void order::host_waits_for_all() {
  const std::scoped_lock lock(order_mutex);
  if (!state) return;
  for (const auto& clock : state->clocks) State::join(state->clocks[kHost], clock);
}

void order::work(const c10::Stream& stream) {
  const std::scoped_lock lock(order_mutex);
  if (state) state->note("work", stream);
}

void order::read(const void* memory, const c10::Stream& stream) {
  const std::scoped_lock lock(order_mutex);
  auto* const block = state ? state->block_of(memory) : nullptr;
  if (!block) return;
  const auto now = state->step(state->number_of(stream));
  state->depend(block->written, now, "reads what it does not wait for, by");
  block->read.insert_or_assign(now.stream, now);
}

void order::write(const void* memory, const c10::Stream& stream) {
  const std::scoped_lock lock(order_mutex);
  auto* const block = state ? state->block_of(memory) : nullptr;
  if (!block) return;
  const auto now = state->step(state->number_of(stream));
  state->depend(block->written, now, "overwrites without waiting for");
  for (const auto& [reader, access] : block->read)
    state->depend(access, now, "overwrites what may still be read by");
  block->written = now;
  block->read.clear();
}

}  // namespace braid::fake_gpu
