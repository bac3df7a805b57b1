#include "pipeline/request/latents.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace braid {
namespace {

// How many values a shape has; unset for one that no tensor can have. Sizes of 0 count as 1 in
// strides.
std::optional<std::int64_t> count_of(at::IntArrayRef shape) {
  std::int64_t stride = 1;
  for (const auto n : shape)
    if (n < 0 || __builtin_mul_overflow(stride, std::max<std::int64_t>(n, 1), &stride)) return {};
  return std::ranges::find(shape, 0) == shape.end() ? stride : 0;
}

}  // namespace

Latents latents_of(const at::Tensor& x) {
  const auto copy = x.to(at::kCPU, at::kFloat).contiguous();
  const auto* const data = copy.const_data_ptr<float>();
  return {.shape = copy.sizes().vec(), .values = {data, data + copy.numel()}};
}

void check_finite(const char* name, const std::vector<float>& values) {
  const auto other = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  require(other == values.end(), "values of ", name, " should be finite numbers, one is ",
          other == values.end() ? 0 : *other);
}

at::Tensor tensor_in(const char* name, const Latents& latents, std::int64_t dims) {
  const at::IntArrayRef shape = latents.shape;
  require(std::int64_t(shape.size()) == dims, name, " should have ", dims,
          " dimensions, they have ", shape.size());
  require(count_of(shape) == std::int64_t(latents.values.size()), name, " of shape ", shape,
          " have ", latents.values.size(), " values");
  check_finite(name, latents.values);
  return at::tensor(latents.values).view(shape);
}

void check_latents(const std::string& what, const Latents& latents,
                   const std::vector<at::IntArrayRef>& shapes) {
  std::string wanted;
  for (const auto& shape : shapes) wanted += text_of(wanted.empty() ? "" : " or ", shape);
  const at::IntArrayRef has = latents.shape;
  require(std::find(shapes.begin(), shapes.end(), has) != shapes.end(), what,
          " should have the shape ", wanted, ", they have ", has);
  const auto count = std::int64_t(latents.values.size());
  require(count == c10::multiply_integers(has), what, " should have ", c10::multiply_integers(has),
          " values, they have ", count);
}

at::Tensor changed_latents(const char* name, const Latents& after, const at::Tensor& before) {
  check_latents(name, after, {before.sizes()});
  if (at::isfinite(before).all().item<bool>()) check_finite(name, after.values);
  return at::tensor(after.values).view(before.sizes());
}

}  // namespace braid
