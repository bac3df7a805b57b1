#include "comm/reduce.h"

#include <ATen/ATen.h>

namespace braid {

at::Tensor sum_in_order(std::span<const at::Tensor> parts, std::size_t at) {
  const auto dtype = parts[at].scalar_type();
  const auto wide = !at::isFloatingType(dtype) || dtype == at::kDouble ? dtype : at::kFloat;
  const auto widened = [&](const at::Tensor& part) { return part.to(parts[at].device(), wide); };
  auto sum = widened(parts[0]).clone();
  for (const auto& part : parts.subspan(1))
    dtype == at::kBool ? sum.logical_or_(widened(part)) : sum.add_(widened(part));
  return sum.to(dtype);
}

}  // namespace braid
