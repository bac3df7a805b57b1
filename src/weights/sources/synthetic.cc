#include "weights/sources/synthetic.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string_view>

#include "base/error.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

// A prime, so that a matrix's rows do not repeat each other.
constexpr std::int64_t kPeriod = 1'048'573;

bool is_scale(const std::string& path) {
  return path.ends_with("scale") || path.ends_with("running_var") ||
         path.find("norm") != std::string::npos;
}

// The distribution of a tensor's elements.
struct Spread {
  std::int64_t columns;
  double deviation, center;
};

Spread spread_of(const std::string& path, at::IntArrayRef shape) {
  if (shape.size() < 2)
    return {.columns = 1, .deviation = 0.02, .center = is_scale(path) ? 1.0 : 0.0};
  const auto columns = c10::multiply_integers(shape.slice(1));
  return {.columns = columns, .deviation = 1 / std::sqrt(double(columns)), .center = 0};
}

// Where a tensor begins within the values.
std::int64_t offset_of(const std::string& path) {
  return std::int64_t(std::hash<std::string_view>()(path) % std::uint64_t(kPeriod));
}

struct Drawn {
  at::Tensor normal;
  std::string words;
};

// Drawn once per process: every part of a planned model asks for them without using them.
const Drawn& drawn_from(std::uint64_t seed) {
  static std::mutex mutex;
  static std::map<std::uint64_t, Drawn> all;
  const std::scoped_lock lock(mutex);
  auto& drawn = all[seed];
  if (!drawn.normal.defined()) {
    drawn.normal = at::randn({kPeriod}, at::detail::createCPUGenerator(seed), at::kFloat);
    drawn.words = "drawn " + source_of(drawn.normal).identity();
  }
  return drawn;
}

}  // namespace

SyntheticValues::SyntheticValues(std::uint64_t seed) {
  const auto& drawn = drawn_from(seed);
  normal_ = drawn.normal;
  drawn_ = drawn.words;
}

at::Tensor SyntheticValues::share(const std::string& path, at::IntArrayRef shape,
                                  const Shard& wanted, const at::TensorOptions& options) const {
  const auto [columns, deviation, center] = spread_of(path, shape);
  const auto column_runs =
      wanted.columns.empty() ? std::vector<Share>{{.begin = 0, .count = columns}} : wanted.columns;
  const auto spread = [&, deviation = deviation, center = center](const at::Tensor& x) {
    return (x.to(options.device()) * deviation + center).to(options.dtype());
  };
  const bool is_small = c10::multiply_integers(shape) < kPeriod;  // cheaper than spreading all
  const auto values = is_small ? normal_ : spread(normal_);
  const auto offset = offset_of(path);

  std::vector<at::Tensor> runs;
  const auto add = [&](std::int64_t begin, std::int64_t count) {
    for (auto at = (offset + begin) % kPeriod; count > 0; at = 0) {
      const auto some = std::min(count, kPeriod - at);
      runs.push_back(values.narrow(0, at, some));
      count -= some;
    }
  };
  std::int64_t rows = 0;
  for (const auto& run : wanted.rows) {
    rows += run.count;
    if (wanted.columns.empty()) {
      add(run.begin * columns, run.count * columns);
      continue;
    }
    for (auto row = run.begin; row < run.begin + run.count; ++row)
      for (const auto& part : column_runs) add(row * columns + part.begin, part.count);
  }
  auto sizes = shape.vec();
  if (!sizes.empty()) sizes[0] = rows;
  if (!wanted.columns.empty()) {
    sizes[1] = 0;
    for (const auto& part : wanted.columns) sizes[1] += part.count;
  }
  const auto joined = at::cat(runs).view(sizes);
  return is_small ? spread(joined) : joined;
}

std::string SyntheticValues::identity_of(const std::string& path, at::IntArrayRef shape) const {
  const auto [columns, deviation, center] = spread_of(path, shape);
  return text_of(drawn_, " from ", offset_of(path), " in rows of ", columns, ", ", center, " +- ",
                 std::hexfloat, deviation);
}

}  // namespace braid
