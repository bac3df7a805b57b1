#include "comm/reduce.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace braid {
namespace {

// So that runs of usual tensors begin aligned.
std::int64_t unit_of(std::int64_t numel, int ranks) {
  constexpr std::int64_t kAligned = 16;
  return numel < kAligned * ranks ? 1 : kAligned;
}

}  // namespace

std::vector<SumRun> runs_of_rank(std::span<const at::Tensor> xs, int rank, int size) {
  std::int64_t total = 0, first = 0;
  for (const auto& x : xs) total += x.numel();
  const auto unit = unit_of(total, size);
  const auto units = share_of((total + unit - 1) / unit, rank, size);
  const auto begin = units.begin * unit, end = std::min(total, (units.begin + units.count) * unit);
  std::vector<SumRun> runs;
  for (std::size_t i = 0; i < xs.size(); first += xs[i++].numel()) {
    const auto from = std::max(begin, first), to = std::min(end, first + xs[i].numel());
    if (from < to)
      runs.push_back({.tensor = i, .elements = {.begin = from - first, .count = to - from}});
  }
  return runs;
}

at::Tensor elements_of(const at::Tensor& x, const Share& elements) {
  return x.view({-1}).narrow(0, elements.begin, elements.count);
}

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
  const auto unit = unit_of(numel, ranks), units = (numel + unit - 1) / unit;
  const auto share = std::min(numel, (units + ranks - 1) / ranks * unit);
  return ((ranks - 1) * share + numel) * element_bytes;
}

}  // namespace braid
