#include "pipeline/planner/costs/widened.h"

#include <algorithm>

#include "ops/kernels/products.h"
#include "weights/codes/rotation.h"

namespace braid {
namespace {

// Whether codes are widened before they multiply, as in ops/linear.cc.
bool widens_codes(const PlanJob& job, Quantize form) {
  if (form == Quantize::kInt8Dynamic) return false;
  return !job.is_on_host || job.dtype != at::kBFloat16 || !ops::leads_in_bfloat16();
}

}  // namespace

std::int64_t widened_bytes(const PlanJob& job, const PartPages& pages, Quantize form) {
  const auto of_blocks = job.is_on_host ? pages.decoded : pages.panel;
  if (widens_codes(job, form)) return std::max(pages.widened, of_blocks);
  return job.is_on_host ? 0 : of_blocks;
}

bool runs_int8_products(const PlanJob& job) {
  if (job.memory.quantize == Quantize::kInt8Dynamic) return true;
  if (!job.tensors || !keeps_rotated_codes(job.memory.quantize)) return false;
  return std::ranges::any_of(job.family->denoisers(), [&](const Part* part) {
    return std::ranges::any_of(job.tensors->of(*part).tensors, &PlannedTensor::is_rotated);
  });
}

}  // namespace braid
