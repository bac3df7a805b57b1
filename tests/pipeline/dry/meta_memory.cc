#include "pipeline/dry/meta_memory.h"

#include <ATen/record_function.h>
#include <c10/core/Allocator.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>

namespace braid {

// One tensor's memory. Its owner may free it on another rank's thread.
struct DryAllocation {
  std::int64_t bytes;
  std::shared_ptr<DryMeter::State> meter;
};

namespace {

thread_local std::shared_ptr<DryMeter::State> meter_here;

}  // namespace

struct DryMeter::State {
  std::mutex mutex;
  std::int64_t live = 0, peak = 0, flops = 0;
  int depth = 0;                             // of fused operations that run
  std::set<const DryAllocation*> made = {};  // within the outermost of these

  void allocate(const DryAllocation& one) {
    const std::scoped_lock lock(mutex);
    if (depth > 0)
      made.insert(&one);
    else
      add(one.bytes);
  }
  void free(const DryAllocation& one) {
    const std::scoped_lock lock(mutex);
    if (made.erase(&one) == 0) live -= one.bytes;
  }
  void begin() {
    const std::scoped_lock lock(mutex);
    ++depth;
  }
  void end() {
    const std::scoped_lock lock(mutex);
    if (--depth > 0) return;
    for (const auto* const one : made) add(one->bytes);
    made.clear();
  }

 private:
  void add(std::int64_t bytes) {
    live += bytes;
    peak = std::max(peak, live);
  }
};

namespace {

class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (!meter_here) return {nullptr, at::Device(at::kMeta)};
    auto* const one = new DryAllocation{std::int64_t(bytes), meter_here};
    meter_here->allocate(*one);
    return {nullptr, one, &free, at::Device(at::kMeta)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {}

 private:
  static void free(void* context) {
    const std::unique_ptr<const DryAllocation> one(static_cast<const DryAllocation*>(context));
    one->meter->free(*one);
  }
};

void count_meta_tensors() {
  constexpr std::uint8_t kBeforeLibTorchs = 1;
  static CountingAllocator allocator;
  static std::once_flag once;
  std::call_once(once, [] { c10::SetAllocator(at::kMeta, &allocator, kBeforeLibTorchs); });
}

// Counts from the sizes that ops/record.h lists.
std::int64_t flops_of(std::string_view name, c10::ArrayRef<const c10::IValue> sizes) {
  const auto product = [&](std::size_t count) {
    std::int64_t all = 1;
    for (std::size_t i = 0; i < count; ++i) all *= sizes[i].toInt();
    return all;
  };
  if (name == "braid::linear" || name == "braid::linear_gelu") return 2 * product(3);
  return name == "braid::attention" ? 4 * product(4) : 0;
}

bool is_fused(const at::RecordFunction& operation) {
  return std::string_view(operation.name()).starts_with("braid::");
}

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& operation) {
  if (!is_fused(operation) || !meter_here) return nullptr;
  if (meter_here->depth == 0) meter_here->flops += flops_of(operation.name(), operation.inputs());
  meter_here->begin();
  return nullptr;
}

void on_end(const at::RecordFunction& operation, at::ObserverContext*) {
  if (is_fused(operation) && meter_here) meter_here->end();
}

}  // namespace

DryMeter::DryMeter() : state_(std::make_shared<State>()) { count_meta_tensors(); }

std::int64_t DryMeter::live() const { return state_->live; }
std::int64_t DryMeter::peak() const { return state_->peak; }
std::int64_t DryMeter::flops() const { return state_->flops; }
void DryMeter::peak_from_here() { state_->peak = state_->live; }

DryMeter::Here::Here(const DryMeter& meter)
    : before_(std::exchange(meter_here, meter.state_)),
      callback_(before_ ? at::INVALID_CALLBACK_HANDLE
                        : at::addThreadLocalCallback(
                              at::RecordFunctionCallback(on_begin, on_end).needsInputs(true))) {}

DryMeter::Here::~Here() {
  if (!before_) at::removeCallback(callback_);
  meter_here = before_;
}

}  // namespace braid
