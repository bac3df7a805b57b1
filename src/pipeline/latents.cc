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
