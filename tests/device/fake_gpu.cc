#include "fake_gpu.h"

#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <mutex>

#include "fake_crossings.h"
#include "fake_order.h"

namespace braid::fake_gpu {
namespace {

using c10::Device, c10::DeviceIndex, c10::Stream;
using Stats = c10::CachingDeviceAllocator::DeviceStats;

constexpr DeviceIndex kNumGpus = 4;
constexpr std::size_t kAlignment = 512;  // as CUDA's allocator has it
constexpr std::size_t kFreeBytes = 8'000'000'000;
constexpr auto kAll = std::size_t(c10::CachingAllocator::StatType::AGGREGATE);

thread_local DeviceIndex current_gpu = 0;
thread_local std::array<c10::StreamId, kNumGpus> current_streams = {};
std::atomic<std::int64_t> streams_made = 0, streams_recorded = 0, seconds = 0;
std::atomic<bool> are_stuck = false;

void wait_for_all() {
  TORCH_CHECK(!are_stuck, "the GPUs never finish");
  order::host_waits_for_all();
}

Stream current_stream(DeviceIndex gpu) {
  return Stream(Stream::UNSAFE, Device(at::kCUDA, gpu), current_streams.at(std::size_t(gpu)));
}

class Allocator : public c10::DeviceAllocator {
 public:
  void initialise() {
    const std::scoped_lock lock(mutex_);
    is_initialised_ = true;
  }
  bool initialized() override { return is_initialised_; }

  c10::DataPtr allocate(std::size_t bytes) override {
    const auto rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* const data = rounded == 0 ? nullptr : std::aligned_alloc(kAlignment, rounded);
    if (data) add(current_gpu, std::int64_t(rounded));
    order::allocate(data, rounded, current_stream(current_gpu));
    return {data, new Block{data, current_gpu, std::int64_t(rounded)}, &free_block,
            Device(at::kCUDA, current_gpu)};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  void emptyCache(c10::MempoolId_t) override {
    const std::scoped_lock lock(mutex_);
    for (auto& stats : stats_)
      stats.reserved_bytes[kAll].current = stats.allocated_bytes[kAll].current;
  }
  void recordStream(const c10::DataPtr&, Stream) override { ++streams_recorded; }
  Stats getDeviceStats(DeviceIndex gpu) override { return stats_of(gpu); }
  void resetAccumulatedStats(DeviceIndex gpu) override { (void)stats_of(gpu); }
  void resetPeakStats(DeviceIndex gpu) override {
    auto& bytes = stats_of(gpu).allocated_bytes[kAll];
    bytes.peak = bytes.current;
    auto& reserved = stats_of(gpu).reserved_bytes[kAll];
    reserved.peak = reserved.current;
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(DeviceIndex gpu) override {
    const std::scoped_lock lock(mutex_);
    const auto reserved = stats_.at(std::size_t(gpu)).reserved_bytes[kAll].current;
    return {kFreeBytes - std::size_t(reserved), 2 * kFreeBytes};
  }

 private:
  struct Block {
    void* data;
    DeviceIndex gpu;
    std::int64_t bytes;
  };
  static void free_block(void* context);

  void add(DeviceIndex gpu, std::int64_t bytes) {
    const std::scoped_lock lock(mutex_);
    auto& all = stats_[std::size_t(gpu)].allocated_bytes[kAll];
    all.current += bytes;
    all.peak = std::max(all.peak, all.current);
    // What is freed stays reserved, and takes whatever is no larger.
    auto& reserved = stats_[std::size_t(gpu)].reserved_bytes[kAll];
    reserved.current = std::max(reserved.current, all.current);
    reserved.peak = std::max(reserved.peak, reserved.current);
  }
  Stats& stats_of(DeviceIndex gpu) {
    TORCH_CHECK(is_initialised_, "Invalid device argument ", int(gpu), ": did you call init?");
    return stats_.at(std::size_t(gpu));
  }

  std::mutex mutex_;
  std::atomic<bool> is_initialised_ = false;
  std::array<Stats, kNumGpus> stats_;
};

Allocator& allocator() {
  static auto* const allocator = new Allocator;
  return *allocator;
}

void Allocator::free_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  if (block->data) allocator().add(block->gpu, -block->bytes);
  order::free(block->data);
  std::free(block->data);
}

struct Hooks : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override { allocator().initialise(); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return allocator().initialized(); }
  DeviceIndex deviceCount() const override { return kNumGpus; }
  int getNumGPUs() const override { return kNumGpus; }
  DeviceIndex current_device() const override { return current_gpu; }
  DeviceIndex getCurrentDevice() const override { return current_gpu; }
  void setCurrentDevice(DeviceIndex gpu) const override { current_gpu = gpu; }
  void deviceSynchronize(DeviceIndex) const override {
    refuse_if_any_is_recorded();
    wait_for_all();
  }
};

// Every stream is done with what it is given before it is given more.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return at::kCUDA; }
  Device getDevice() const override { return Device(at::kCUDA, current_gpu); }
  void setDevice(Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(Device device) const noexcept override {
    if (device.has_index()) current_gpu = device.index();
  }
  Device exchangeDevice(Device device) const override {
    const auto before = getDevice();
    setDevice(device);
    return before;
  }
  DeviceIndex deviceCount() const noexcept override { return kNumGpus; }

  Stream getStream(Device device) const override {
    return stream(device, current_streams.at(std::size_t(index_of(device))));
  }
  Stream getDefaultStream(Device device) const override { return stream(device, 0); }
  Stream getNewStream(Device device, int) const override { return stream(device, ++streams_made); }
  Stream getStreamFromGlobalPool(Device device, bool) const override {
    return getNewStream(device, 0);
  }
  Stream exchangeStream(Stream next) const override {
    const auto before = getStream(next.device());
    current_streams.at(std::size_t(next.device_index())) = next.id();
    return before;
  }
  void* getStreamNativeHandle(const Stream) const override { return nullptr; }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream& stream) const override {
    refuse_if_recorded(stream);
    wait_for_all();
  }
  void synchronizeDevice(DeviceIndex) const override {
    refuse_if_any_is_recorded();
    wait_for_all();
  }

  // An event is the second at which it was recorded.
  void record(void** event, const Stream& stream, DeviceIndex, c10::EventFlag) const override {
    if (!*event) *event = new std::int64_t;
    *static_cast<std::int64_t*>(*event) = ++seconds;
    order::record(*event, stream);
    crossings::record(*event, stream);
  }
  void destroyEvent(void* event, DeviceIndex) const noexcept override {
    delete static_cast<std::int64_t*>(event);
  }
  double elapsedTime(void* from, void* to, const DeviceIndex) const override {
    return 1000.0 * double(*static_cast<std::int64_t*>(to) - *static_cast<std::int64_t*>(from));
  }
  void block(void* event, const Stream& stream) const override {
    order::wait(event, stream);
    crossings::wait(event, stream);
  }
  bool queryEvent(void* event) const override {
    if (!are_stuck) order::host_waits(event);
    return !are_stuck;
  }
  void synchronizeEvent(void* event) const override {
    TORCH_CHECK(!are_stuck, "the GPUs never finish");
    order::host_waits(event);
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {
    ++streams_recorded;
  }

 private:
  static DeviceIndex index_of(Device device) {
    return device.has_index() ? device.index() : current_gpu;
  }
  static Stream stream(Device device, c10::StreamId id) {
    return Stream(Stream::UNSAFE, Device(at::kCUDA, index_of(device)), id);
  }
};

}  // namespace

c10::Allocator* memory() { return &allocator(); }
std::int64_t num_streams_recorded() { return streams_recorded; }

AreStuck::AreStuck() { are_stuck = true; }
AreStuck::~AreStuck() { are_stuck = false; }

}  // namespace braid::fake_gpu

using namespace braid::fake_gpu;  // the macros below name what they register

namespace at {
using FakeHooks = Hooks;
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, FakeHooks)
}  // namespace at

namespace c10::impl {
C10_REGISTER_GUARD_IMPL(CUDA, Guard)
}

static const bool kIsInstalled = [] {
  c10::SetAllocator(at::kCUDA, &allocator());
  return true;
}();
