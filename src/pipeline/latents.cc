#include "pipeline/latents.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

#include <algorithm>

#include "base/error.h"

namespace braid {

Latents latents_of(const at::Tensor& x) {
  const auto copy = x.to(at::kCPU, at::kFloat).contiguous();
  const auto* const data = copy.const_data_ptr<float>();
  return {.shape = copy.sizes().vec(), .values = {data, data + copy.numel()}};
}

at::Tensor tensor_in(const char* name, const Latents& latents, std::int64_t dims) {
  const at::IntArrayRef shape = latents.shape;
  require(std::int64_t(shape.size()) == dims, name, " should have ", dims,
          " dimensions, they have ", shape.size());
  const bool has_sizes = std::ranges::all_of(shape, [](std::int64_t n) { return n >= 0; });
  require(has_sizes && c10::multiply_integers(shape) == std::int64_t(latents.values.size()), name,
          " of shape ", shape, " have ", latents.values.size(), " values");
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

}  // namespace braid
