#include "comm/reduce.h"

#include <ATen/ATen.h>

namespace braid {

at::Tensor sum_in_order(std::span<const at::Tensor> parts, std::size_t at) {
  const auto dtype = parts[at].scalar_type();
  const auto wide = !at::isFloatingType(dtype) || dtype == at::kDouble ? dtype : at::kFloat;
  const auto there = [&](const at::Tensor& part) { return part.to(parts[at].device()); };
  const auto first = there(parts[0]);  // moved before it is widened
  auto sum = first.to(wide, /*non_blocking=*/false, /*copy=*/first.is_alias_of(parts[0]));
  for (const auto& part : parts.subspan(1))
    dtype == at::kBool ? sum.logical_or_(there(part)) : sum.add_(there(part));
  return sum.to(dtype);
}

std::int64_t all_reduce_bytes(std::int64_t numel, std::int64_t element_bytes, int ranks) {
  const auto share = (numel + ranks - 1) / ranks;
  const auto received = ranks * share * element_bytes, result = numel * element_bytes;
  return received + result + share * (std::int64_t(sizeof(float)) + element_bytes);
}

}  // namespace braid
