// What does it cost to keep weights on the device only while they are needed? A simulated device
// whose copies and computations take fixed times: 57 blocks, like FLUX.1.
//
//   copy 80 = a block's copy takes 0.8 of its computation; resident = blocks that stay.
// `over_bound` is the time over max(computing, copying), the best any order can reach.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <chrono>
#include <thread>

#include "weights/paging/cpu_device.h"
#include "weights/paging/order_checker.h"
#include "weights/paging/pages.h"

namespace braid {
namespace {

using std::chrono::microseconds;
constexpr int kBlocks = 57;
constexpr microseconds kCompute(2000);

// Computes on its own queue, as a GPU does; each copy lasts at least the given time.
class TimedDevice : public CpuPageDevice {
 public:
  explicit TimedDevice(microseconds copy) : copy_(copy) {}
  bool is_asynchronous() const override { return true; }

  void record(Event event, StreamName stream, Site site) override {
    if (stream == StreamName::kCopy) return CpuPageDevice::record(event, stream, site);
    const auto time = events().record(event.id);
    computations_.push([this, event, time] { events().reach(event.id, time); });
  }
  void wait(StreamName stream, Event event, Site site) override {
    if (stream == StreamName::kCopy) return CpuPageDevice::wait(stream, event, site);
    const auto time = events().recorded(event.id);
    computations_.push([this, event, time] { events().await(event.id, time); });
  }
  void copy(StreamName stream, Slot to, const PageBytes& from, Site site) override {
    CpuPageDevice::copy(stream, to, from, site);
    copies().push([pause = copy_] { std::this_thread::sleep_for(pause); });
  }
  void compute() {
    computations_.push([] { std::this_thread::sleep_for(kCompute); });
  }
  void finish() { computations_.finish(); }

 private:
  microseconds copy_;
  WorkQueue computations_;
};

void offloaded(benchmark::State& state) {
  const auto copy = kCompute * state.range(0) / 100;
  const auto resident = int(state.range(1));
  const auto device = std::make_shared<TimedDevice>(copy);
  Pages pages(device, at::kCPU,
              {.prefetch = 1, .resident = resident, .residency = Residency::kStrided});
  for (int i = 0; i < kBlocks; ++i) {
    pages.add_group("blocks." + std::to_string(i));
    pages.add(at::zeros({64}, at::kFloat));
  }
  pages.finish();
  const auto step = [&] {
    for (int i = 0; i < kBlocks; ++i) {
      pages.enter(i);
      device->compute();
      pages.leave(i);
    }
    device->finish();
  };
  step();
  std::chrono::duration<double> total{};
  for (auto _ : state) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 4; ++i) step();
    total += std::chrono::steady_clock::now() - began;
  }
  // what sleeping really takes here
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kBlocks; ++i) std::this_thread::sleep_for(kCompute);
  const std::chrono::duration<double> computing = std::chrono::steady_clock::now() - began;
  const auto copying =
      computing * double(kBlocks - resident) / kBlocks * double(state.range(0)) / 100;
  const auto bound = std::max(computing, copying);
  state.counters["over_bound"] = total / double(4 * state.iterations()) / bound - 1;
}

BENCHMARK(offloaded)
    ->ArgNames({"copy", "resident"})
    ->Args({0, kBlocks})
    ->Args({80, 0})
    ->Args({200, kBlocks / 2})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(3);

}  // namespace
}  // namespace braid
