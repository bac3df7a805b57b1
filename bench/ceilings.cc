#include "ceilings.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "pipeline/proofs/moment.h"
#include "weights/paging/cpu_device.h"
#include "weights/paging/locked_memory.h"

namespace braid {
namespace {

using at::Tensor;
template <class Item>
using List = c10::List<Item>;

using NoScalars = List<std::optional<at::Scalar>>;

constexpr int kTimes = 5;
constexpr double kEnough = 1.0;  // seconds spent per way
constexpr double kFarBehind = 1.5;
constexpr std::int64_t kChecked = 4;  // rows of the result

struct Way {
  at::Device device;
  std::string name;
  std::function<Tensor()> run;  // [rows outputs], or of attention [1 heads queries width]
};

struct Answer {
  Tensor tensor;
  double seconds;
};

Answer answer_of(const Way& way) {
  const Moment begin(way.device);
  auto tensor = way.run();
  const Moment end(way.device);
  return {std::move(tensor), begin.seconds_until(end)};
}

double seconds_of(const Way& way) { return answer_of(way).seconds; }

// The least time, as other processes use this machine too. A way far behind the best gets no more
// runs than its warm-up, which took `first`.
WayTime measure(const Way& way, double first, double best) {
  if (first > kFarBehind * best) return {way.name, first};
  double least = INFINITY, spent = 0;
  for (int i = 0; i < kTimes && spent < kEnough; ++i) {
    const auto seconds = seconds_of(way);
    spent += seconds;
    least = std::min(least, seconds);
  }
  return {way.name, least};
}

void check_answer(const Way& way, const Tensor& answer, const Tensor& want) {
  const auto error =
      ((answer.to(at::kFloat) - want).norm() / want.norm().clamp_min(1e-30)).item<double>();
  check(error < 0.02, way.name, " is wrong: its relative error is ", error);
}

// `part` extracts from an answer what `want` holds.
std::vector<WayTime> measure_all(const std::vector<Way>& ways, const Tensor& want,
                                 const std::function<Tensor(const Tensor&)>& part) {
  std::vector<WayTime> times;
  double best = INFINITY;
  for (const auto& way : ways) {
    const auto answer = answer_of(way);
    check_answer(way, part(answer.tensor), want);
    times.push_back(measure(way, answer.seconds, best));
    best = std::min(best, times.back().seconds);
  }
  std::sort(times.begin(), times.end(),
            [](const WayTime& a, const WayTime& b) { return a.seconds < b.seconds; });
  return times;
}

// A LibTorch operator that may be missing, typed; nothing if the build has no CPU kernel for it.
template <class Signature>
std::optional<c10::TypedOperatorHandle<Signature>> find_operator(const char* name) {
  const auto found = c10::Dispatcher::singleton().findSchema({name, ""});
  if (!found || !(found->hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
                  found->hasKernelForDispatchKey(c10::DispatchKey::MkldnnCPU)))
    return {};
  return found->typed<Signature>();
}

// oneDNN's product with a prepacked weight.
std::optional<Way> packed_way(const Tensor& x, const Tensor& weight) {
  const auto pack = find_operator<Tensor(const Tensor&, std::optional<std::int64_t>)>(
      "mkldnn::_reorder_linear_weight");
  const auto multiply =
      find_operator<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&,
                           c10::string_view, List<std::optional<at::Scalar>>,
                           std::optional<c10::string_view>)>("mkldnn::_linear_pointwise");
  if (!pack || !multiply) return {};
  Tensor packed;
  try {
    packed = pack->call(weight.to_mkldnn(), x.size(0));
    (void)multiply->call(x.narrow(0, 0, 1), packed, {}, "none", NoScalars(), "");
  } catch (const c10::Error&) {
    return {};  // not for this type on this processor
  }
  return Way{at::kCPU, "mkldnn::_linear_pointwise, packed",
             [=] { return multiply->call(x, packed, {}, "none", NoScalars(), ""); }};
}

std::vector<Way> float_ways(const Tensor& x, const Tensor& weight) {
  const Way plain{x.device(), "at::linear", [=] { return at::linear(x, weight); }};
  if (!x.is_cpu()) return {plain};
  std::vector<Way> ways;
  if (x.scalar_type() != at::kFloat)
    ways.push_back({at::kCPU, "at::linear in float32", [x, wide = weight.to(at::kFloat)] {
                      return at::linear(x.to(at::kFloat), wide).to(x.scalar_type());
                    }});
  ways.push_back(plain);
  if (auto packed = packed_way(x, weight)) ways.push_back(*packed);
  return ways;
}

Way matrix_way(const Tensor& x, const Tensor& weight) {
  return {x.device(), "at::_int_mm", [=] { return at::_int_mm(x, weight.t()); }};
}

std::optional<Way> qlinear_way(const Tensor& x, const Tensor& weight) {
  const auto pack =
      find_operator<Tensor(Tensor, std::optional<List<std::int64_t>>)>("onednn::qlinear_prepack");
  const auto multiply = find_operator<Tensor(
      Tensor, double, std::int64_t, Tensor, Tensor, Tensor, std::optional<Tensor>, double,
      std::int64_t, std::optional<at::ScalarType>, c10::string_view,
      List<std::optional<at::Scalar>>, c10::string_view)>("onednn::qlinear_pointwise");
  if (!pack || !multiply) return {};
  const auto scales = at::ones({weight.size(0)}, at::kFloat);
  const auto zeros = at::zeros({weight.size(0)}, at::kInt);
  Tensor packed;
  const auto way = [&](const Tensor& rows) {
    return Way{at::kCPU, "onednn::qlinear_pointwise", [=] {
                 return multiply->call(rows, 1.0, 0, packed, scales, zeros, {}, 1.0, 0, at::kFloat,
                                       "none", NoScalars(), "");
               }};
  };
  try {
    packed = pack->call(weight, {});
    // On some processors oneDNN has only its reference loops for this: a row takes seconds.
    if (seconds_of(way(x.narrow(0, 0, 1))) > seconds_of(matrix_way(x, weight))) return {};
  } catch (const c10::Error&) {
    return {};
  }
  return way(x);
}

std::vector<Way> code_ways(const Tensor& x, const Tensor& weight) {
  std::vector<Way> ways = {matrix_way(x, weight)};
  if (!x.is_cpu()) return ways;
  if (auto quantized = qlinear_way(x, weight)) ways.push_back(*quantized);
  return ways;
}

// One scale per row of each: weights with a scale per row, activations with a scale per token.
std::vector<Way> float8_ways(const Tensor& x, const Tensor& weight) {
  const auto ones = [&](at::IntArrayRef shape) {
    return at::ones(shape, x.options().dtype(at::kFloat));
  };
  const auto of_tokens = ones({x.size(0), 1}), of_rows = ones({1, weight.size(0)});
  const auto multiply = [=](bool is_fast) {
    return [=] {
      return at::_scaled_mm(x, weight.t(), of_tokens, of_rows, {}, {}, at::kBFloat16, is_fast);
    };
  };
  return {{x.device(), "at::_scaled_mm", multiply(false)},
          {x.device(), "at::_scaled_mm, fast sums", multiply(true)}};
}

std::vector<Way> ways_of(at::ScalarType dtype, const Tensor& x, const Tensor& weight) {
  if (dtype == at::kChar) return code_ways(x, weight);
  return dtype == at::kFloat8_e4m3fn ? float8_ways(x, weight) : float_ways(x, weight);
}

Tensor drawn(at::ScalarType dtype, at::IntArrayRef shape, at::Device device) {
  const auto options = at::TensorOptions(device);
  return dtype == at::kChar ? at::randint(-127, 128, shape, options.dtype(dtype))
                            : at::randn(shape, options).to(dtype);
}

}  // namespace

const std::vector<WayTime>& Ceilings::product(at::ScalarType dtype, const ProductShape& shape) {
  auto& times = products_[{dtype, shape}];
  if (!times.empty()) return times;
  const auto x = drawn(dtype, {shape.rows, shape.inputs}, device_);
  const auto weight = drawn(dtype, {shape.outputs, shape.inputs}, device_);
  const auto checked = std::min(kChecked, shape.rows);
  const auto want = at::linear(x.narrow(0, 0, checked).to(at::kFloat), weight.to(at::kFloat));
  const auto part = [=](const Tensor& answer) { return answer.narrow(0, 0, checked); };
  times = measure_all(ways_of(dtype, x, weight), want, part);
  return times;
}

const std::vector<WayTime>& Ceilings::attention(at::ScalarType dtype, const AttentionShape& shape) {
  auto& times = attentions_[{dtype, shape}];
  if (!times.empty()) return times;
  const auto q = drawn(dtype, {1, shape.heads, shape.queries, shape.width}, device_);
  const auto k = drawn(dtype, {1, shape.heads, shape.keys, shape.width}, device_);
  const auto v = drawn(dtype, {1, shape.heads, shape.keys, shape.width}, device_);
  const auto few = q.narrow(2, 0, std::min(kChecked, shape.queries)).to(at::kFloat);
  const auto scores =
      at::matmul(few, k.to(at::kFloat).transpose(2, 3)) / std::sqrt(double(shape.width));
  const auto want = at::matmul(scores.softmax(-1), v.to(at::kFloat));
  const auto part = [&](const Tensor& answer) { return answer.narrow(2, 0, few.size(2)); };
  times = measure_all({{device_, "at::scaled_dot_product_attention",
                        [=] { return at::scaled_dot_product_attention(q, k, v); }}},
                      want, part);
  return times;
}

double Ceilings::memory_speed() {
  if (memory_speed_ > 0) return memory_speed_;
  constexpr std::int64_t kBytes = std::int64_t(1) << 28;
  const auto bytes = at::TensorOptions(at::kByte).device(device_);
  const auto from = at::ones({kBytes}, bytes), to = at::empty({kBytes}, bytes);
  const Way copy{device_, "copy", [=] { return to.copy_(from); }};
  memory_speed_ = 2.0 * kBytes / measure(copy, seconds_of(copy), INFINITY).seconds;
  return memory_speed_;
}

double Ceilings::copy_speed() const {
  constexpr std::int64_t kBytes = std::int64_t(1) << 30;
  const auto memory = aligned_bytes(kBytes).zero_();
  const auto from = locked(memory).value_or(memory);
  const auto to = at::empty({kBytes}, at::TensorOptions(at::kByte).device(device_));
  const Way copy{device_, "copy", [=] { return to.copy_(from, /*non_blocking=*/true); }};
  return double(kBytes) / measure(copy, seconds_of(copy), INFINITY).seconds;
}

}  // namespace braid
