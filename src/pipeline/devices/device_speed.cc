#include "pipeline/devices/device_speed.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "ops/ops.h"
#include "pipeline/devices/devices.h"
#include "pipeline/devices/rank_threads.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRowsOnGpu = 4096, kRowsOnCpu = 256;
constexpr int kWarmUps = 1, kFewestRuns = 3, kMostRuns = 20;
constexpr double kLongEnough = 0.1;  // seconds, of all runs
constexpr std::uint64_t kMostBytes = 1 << 16;

double seconds_of(at::Device device, const std::function<void()>& work) {
  wait_for(device);
  const auto began = Clock::now();
  work();
  wait_for(device);
  return std::chrono::duration<double>(Clock::now() - began).count();
}

std::string product_name(const TimedProduct& p) {
  return text_of(p.rows, "x", p.width, "x", 4 * p.width, " ", c10::getDtypeNames(p.dtype).first,
                 " ", p.threads, p.threads == 1 ? " thread" : " threads");
}

// A file name that people recognise; what it stands for is in the file.
fs::path file_of(const std::string& kind, const std::string& product) {
  auto name = kind + "-" + product;
  for (auto& c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || c == '.' || c == '_';
    if (!is_plain) c = '-';
  }
  constexpr std::size_t kLongest = 200;  // of 255 that file systems take
  return name.substr(0, kLongest) + ".json";
}

bool is_speed(double flops) { return std::isfinite(flops) && flops > 0; }

std::optional<double> speed_in(const fs::path& file, const std::string& kind,
                               const std::string& product) {
  try {
    if (!is_file(file)) return {};
    const auto kept = parse_json(read_file(file, kMostBytes), file.string());
    const auto flops = kept.at("flops").get<double>();
    const bool is_it = kept.at("device") == kind && kept.at("product") == product;
    return is_it && is_speed(flops) ? std::optional(flops) : std::nullopt;
  } catch (const std::exception&) {  // damaged, or may not be read
    return {};
  }
}

void keep(const fs::path& file, const Json& measured) {
  try {
    fs::create_directories(file.parent_path());
    write_file(file, measured.dump(1) + "\n");
  } catch (const std::exception&) {  // a full disk, a home that is read only
  }
}

}  // namespace

TimedProduct product_for(at::Device device, std::int64_t width, at::ScalarType dtype, int threads) {
  return {.rows = device.is_cpu() ? kRowsOnCpu : kRowsOnGpu,
          .width = width,
          .dtype = dtype,
          .threads = device.is_cpu() ? threads : 1};
}

double measure_product(at::Device device, const TimedProduct& p) {
  const c10::InferenceMode no_autograd;
  const UseThreads threads(p.threads);
  const auto options = at::TensorOptions(device).dtype(p.dtype);
  const auto tokens = at::ones({p.rows, p.width}, options);
  const Matrix weight{.values_NC =
                          at::full({4 * p.width, p.width}, 1.0 / double(p.width), options)};
  Scratch scratch;
  const auto multiply = [&] { (void)ops::linear(tokens, weight, std::nullopt, scratch); };
  for (int i = 0; i < kWarmUps; ++i) (void)seconds_of(device, multiply);
  double fastest = std::numeric_limits<double>::infinity(), all = 0;
  for (int i = 0; i < kMostRuns && (i < kFewestRuns || all < kLongEnough); ++i) {
    const auto seconds = seconds_of(device, multiply);
    fastest = std::min(fastest, seconds);
    all += seconds;
  }
  return p.flops() / std::max(fastest, 1e-9);
}

double kept_speed(const fs::path& folder, const std::string& kind, const TimedProduct& product,
                  const std::function<double()>& measure) {
  const auto name = product_name(product);
  const auto file = folder / file_of(kind, name);
  if (!folder.empty())
    if (const auto kept = speed_in(file, kind, name)) return *kept;
  const auto flops = measure();
  check(is_speed(flops), "the speed of ", kind, " could not be measured: it came out as ", flops,
        " FLOP/s");
  if (!folder.empty()) keep(file, {{"device", kind}, {"product", name}, {"flops", flops}});
  return flops;
}

}  // namespace braid
