// The runtime of the GPUs of fake_gpu.cc.
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "base/gpu_runtime.h"
#include "fake_gpu.h"

namespace braid {
namespace {

// What is locked, by address.
std::mutex mutex;
std::map<void*, std::size_t> locked_memory;
std::int64_t bytes_locked() {  // requires the lock
  std::int64_t sum = 0;
  for (const auto& [data, bytes] : locked_memory) sum += std::int64_t(bytes);
  return sum;
}
std::int64_t most_locked = INT64_MAX;
int capability = 90;
thread_local int first_visible = 0;  // GPU
std::atomic<bool> is_cut = false, are_all_recorded = false;

std::mutex recorded_mutex;
std::optional<c10::Stream> recorded_alone;

}  // namespace

bool gpu_runtime::lock(void* data, std::size_t bytes) {
  const std::scoped_lock lock(mutex);
  const bool may_lock = bytes_locked() <= most_locked - std::int64_t(bytes);
  return may_lock && locked_memory.emplace(data, bytes).second;
}

void gpu_runtime::unlock(void* data) {
  const std::scoped_lock lock(mutex);
  EXPECT_EQ(locked_memory.erase(data), 1u) << "memory is unlocked that was not locked";
}

std::string gpu_runtime::bus_id(int device) {
  return "0000:0" + std::to_string(is_cut ? 0 : first_visible + device) + ":00.0";
}

std::string gpu_runtime::uuid(int device) { return std::to_string(first_visible + device); }

bool gpu_runtime::is_recording(void*) { return are_all_recorded; }

int gpu_runtime::compute_capability(int) { return capability; }

std::string gpu_runtime::architecture(int) { return "sm_" + std::to_string(capability); }

std::int64_t fake_gpu::num_locked_bytes() {
  const std::scoped_lock lock(mutex);
  return bytes_locked();
}

fake_gpu::SeesFrom::SeesFrom(int gpu) { first_visible = gpu; }
fake_gpu::SeesFrom::~SeesFrom() { first_visible = 0; }

fake_gpu::ArePartsOfOne::ArePartsOfOne() { is_cut = true; }
fake_gpu::ArePartsOfOne::~ArePartsOfOne() { is_cut = false; }

fake_gpu::AreRecording::AreRecording() { are_all_recorded = true; }
fake_gpu::AreRecording::AreRecording(const c10::Stream& only) {
  const std::scoped_lock lock(recorded_mutex);
  recorded_alone = only;
}
fake_gpu::AreRecording::~AreRecording() {
  const std::scoped_lock lock(recorded_mutex);
  are_all_recorded = false;
  recorded_alone.reset();
}

void fake_gpu::refuse_if_recorded(const c10::Stream& stream) {
  const std::scoped_lock lock(recorded_mutex);
  TORCH_CHECK(!are_all_recorded && recorded_alone != stream,
              "operation not permitted when stream is capturing");
}

void fake_gpu::refuse_if_any_is_recorded() {
  const std::scoped_lock lock(recorded_mutex);
  TORCH_CHECK(!are_all_recorded && !recorded_alone,
              "operation would make the legacy stream depend on a capturing blocking stream");
}

fake_gpu::IsOlder::IsOlder(int of) { capability = of; }
fake_gpu::IsOlder::~IsOlder() { capability = 90; }

fake_gpu::LocksAtMost::LocksAtMost(std::int64_t bytes) { most_locked = bytes; }
fake_gpu::LocksAtMost::~LocksAtMost() { most_locked = INT64_MAX; }

}  // namespace braid
