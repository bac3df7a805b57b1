#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInternalError = 3, kInvalidArgument = 4, kInProgress = 7;

struct Id {
  char bytes[128];
};

// This is nccl.h's, up to where 2.14 ended.
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

// Tensors without memory are places near none.
bool is_memory(const void* data) { return reinterpret_cast<std::uintptr_t>(data) > (1 << 20); }
std::vector<char> bytes_at(const void* data, std::size_t count) {
  if (!is_memory(data)) return {};
  const auto* const begin = static_cast<const char*>(data);
  return {begin, begin + count};
}

// A rank's part of a sum.
struct Part {
  std::size_t count;
  int type, operation;
  std::vector<char> bytes;  // none of tensors without memory
};

// Those that began with one id.
struct Clique {
  int missing;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> boxes = {};
  // The parts of each sum by its number, until all ranks have read them.
  struct Sum {
    std::map<int, Part> parts = {};
    int reads = 0;
  };
  std::map<std::size_t, Sum> sums = {};
};

// What a rank sends is read when it is asked for, and what it receives is written when the rank
// looks, so that no thread of this file uses memory that its owner may have freed.
struct Message {
  bool is_send;
  void* to;  // null for a send
  std::size_t bytes;
  int peer;
  std::vector<char> sent;
};

struct SumAsked {
  void* result;
  Part mine;
};

struct Received {
  void* to;
  std::vector<char> bytes;
};

struct Communicator {
  int rank, size;
  std::shared_ptr<Clique> clique;
  bool is_ready, is_aborted = false;
  struct Asked {
    std::vector<Message> messages = {};
    std::vector<SumAsked> sums = {};
  } asked = {};              // in the open group
  std::size_t num_sums = 0;  // so far
  bool is_working = false;
  std::vector<Received> received = {};  // not written yet
  std::thread work = {};
  std::multiset<const void*> graphs = {};  // that recorded its messages
};

std::mutex mutex;
std::condition_variable changed;
std::set<Communicator*> communicators;
std::map<std::string, std::shared_ptr<Clique>> cliques;
int start = 0, ids = 0;
thread_local const void* graph = nullptr;
thread_local std::set<Communicator*> group;

// Requires the lock.
Communicator* alive(Communicator* c) {
  if (communicators.count(c) == 1) return c;
  std::fprintf(stderr, "fake NCCL: a communicator is used that was freed\n");
  std::abort();
}

// Requires the lock.
int state(const Communicator& c) {
  if (!c.is_ready || c.clique->missing > 0 || c.is_working) return kInProgress;
  return kSuccess;
}

std::size_t bytes_of(int type) {
  switch (type) {
    case 0:
    case 1:
      return 1;  // int8, uint8
    case 2:
      return 4;  // int32
    case 4:
      return 8;  // int64
    case 6:
      return 2;  // float16
    case 7:
      return 4;  // float32
    case 8:
      return 8;  // float64
    case 9:
      return 2;  // bfloat16
  }
  std::fprintf(stderr, "fake NCCL: a sum of type %d\n", type);
  std::abort();
}

template <class T>
void add(const std::vector<char>& part, std::vector<char>& sum) {
  for (std::size_t at = 0; at < sum.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, &sum[at], sizeof(T));
    std::memcpy(&b, &part[at], sizeof(T));
    a = T(a + b);
    std::memcpy(&sum[at], &a, sizeof(T));
  }
}

void add(int type, const std::vector<char>& part, std::vector<char>& sum) {
  switch (type) {
    case 0:
    case 1:
      return add<unsigned char>(part, sum);
    case 2:
      return add<unsigned>(part, sum);
    case 4:
      return add<std::uint64_t>(part, sum);
    case 6:
      return add<c10::Half>(part, sum);
    case 7:
      return add<float>(part, sum);
    case 8:
      return add<double>(part, sum);
    case 9:
      return add<c10::BFloat16>(part, sum);
  }
}

// Adds from the last rank to the first and rounds each time, which Braid does not.
std::vector<char> sum_of(const std::map<int, Part>& parts) {
  auto sum = parts.rbegin()->second.bytes;
  for (auto part = std::next(parts.rbegin()); part != parts.rend(); ++part)
    add(part->second.type, part->second.bytes, sum);
  return sum;
}

// Real ranks would wait for ever, or sum what is not theirs.
void check_alike(const std::map<int, Part>& parts) {
  const auto& first = parts.begin()->second;
  for (const auto& [rank, part] : parts) {
    if (part.count == first.count && part.type == first.type && part.operation == 0) continue;
    std::fprintf(stderr, "fake NCCL: rank %d sums %zu elements of type %d, another %zu of %d\n",
                 rank, part.count, part.type, first.count, first.type);
    std::abort();
  }
}

// False if it is aborted meanwhile. Requires the lock.
bool add_up(std::unique_lock<std::mutex>& lock, Communicator* c, const SumAsked& asked) {
  const auto number = c->num_sums++;
  auto& sum = c->clique->sums[number];
  sum.parts.emplace(c->rank, asked.mine);
  changed.notify_all();
  changed.wait(lock, [&] { return c->is_aborted || int(sum.parts.size()) == c->size; });
  if (c->is_aborted) return false;
  check_alike(sum.parts);
  c->received.push_back({asked.result, sum_of(sum.parts)});
  if (++sum.reads == c->size) c->clique->sums.erase(number);
  return true;
}

void pass_on(std::unique_lock<std::mutex>& lock, Communicator* c,
             const std::vector<Message>& messages) {
  for (const auto& m : messages) {
    if (!m.is_send) continue;
    c->clique->boxes[{c->rank, m.peer}].push_back(m.sent);
  }
  changed.notify_all();
  for (const auto& m : messages) {
    if (m.is_send) continue;
    auto& box = c->clique->boxes[{m.peer, c->rank}];
    changed.wait(lock, [&] { return c->is_aborted || !box.empty(); });
    if (c->is_aborted) break;
    c->received.push_back({m.to, std::move(box.front())});
    box.pop_front();
  }
}

void work_on(Communicator* c, const Communicator::Asked& asked) {
  std::unique_lock lock(mutex);
  pass_on(lock, c, asked.messages);
  for (const auto& sum : asked.sums)
    if (!add_up(lock, c, sum)) break;
  c->is_working = false;
  changed.notify_all();
}

template <class Work>
int ask(const Work& work, std::vector<Work> Communicator::Asked::*works, Communicator* c) {
  const std::scoped_lock lock(mutex);
  if (state(*alive(c)) != kSuccess) return kInvalidArgument;
  (c->asked.*works).push_back(work);
  group.insert(c);
  if (graph) c->graphs.insert(graph);
  return kSuccess;
}

}  // namespace

EXPORTED int ncclGetVersion(int* version) {
  *version = 29905;
  return kSuccess;
}
EXPORTED const char* ncclGetErrorString(int) { return "as asked"; }
EXPORTED const char* ncclGetLastError(Communicator*) { return ""; }

EXPORTED int ncclGetUniqueId(Id* id) {
  const std::scoped_lock lock(mutex);
  std::snprintf(id->bytes, sizeof id->bytes, "%d", ++ids);
  return kSuccess;
}

EXPORTED int ncclCommInitRankConfig(Communicator** made, int size, Id id, int rank,
                                    const Config* config) {
  if (config->magic != 0xcafebeef || config->size < sizeof(Config) - 4 || config->version < 21400 ||
      config->blocking != 0)
    return kInvalidArgument;
  std::unique_lock lock(mutex);
  if (start == 3) return kInternalError;
  if (start == 2) changed.wait(lock, [] { return start != 2; });
  auto& clique = cliques[id.bytes];
  if (!clique) clique = std::make_shared<Clique>(Clique{.missing = size});
  --clique->missing;
  *made = new Communicator{.rank = rank, .size = size, .clique = clique, .is_ready = start == 0};
  communicators.insert(*made);
  return kInProgress;
}

EXPORTED int ncclCommGetAsyncError(Communicator* c, int* code) {
  const std::scoped_lock lock(mutex);
  *code = state(*alive(c));
  if (*code != kSuccess) return kSuccess;
  for (const auto& [to, bytes] : std::exchange(c->received, {}))
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return kSuccess;
}

EXPORTED int ncclCommAbort(Communicator* c) {
  std::unique_lock lock(mutex);
  alive(c)->is_aborted = true;
  changed.notify_all();
  changed.wait(lock, [&] { return !c->is_working && c->graphs.empty(); });
  communicators.erase(c);
  lock.unlock();
  if (c->work.joinable()) c->work.join();
  delete c;
  return kSuccess;
}

EXPORTED int ncclGroupStart() { return kSuccess; }

EXPORTED int ncclSend(const void* data, std::size_t bytes, int, int peer, Communicator* c, void*) {
  return ask<Message>({true, nullptr, bytes, peer, bytes_at(data, bytes)},
                      &Communicator::Asked::messages, c);
}
EXPORTED int ncclRecv(void* data, std::size_t bytes, int, int peer, Communicator* c, void*) {
  return ask<Message>({false, data, bytes, peer, {}}, &Communicator::Asked::messages, c);
}
EXPORTED int ncclAllReduce(const void* x, void* result, std::size_t count, int type, int operation,
                           Communicator* c, void*) {
  return ask<SumAsked>({result, {count, type, operation, bytes_at(x, count * bytes_of(type))}},
                       &Communicator::Asked::sums, c);
}

EXPORTED int ncclGroupEnd() {
  const std::scoped_lock lock(mutex);
  const auto asked = std::exchange(group, {});
  for (auto* const c : asked) {
    if (c->work.joinable()) c->work.join();  // it has done its work
    c->is_working = true;
    c->work = std::thread(work_on, c, std::exchange(c->asked, {}));
  }
  return asked.empty() ? kSuccess : kInProgress;
}

EXPORTED void fake_nccl_set_start(int next) {
  const std::scoped_lock lock(mutex);
  start = next;
  changed.notify_all();
}
EXPORTED void fake_nccl_record(const void* next) { graph = next; }
EXPORTED void fake_nccl_destroy_graph(const void* gone) {
  const std::scoped_lock lock(mutex);
  for (auto* const c : communicators) c->graphs.erase(gone);
  changed.notify_all();
}
EXPORTED int fake_nccl_num_communicators() {
  const std::scoped_lock lock(mutex);
  return int(communicators.size());
}
