#include "pipeline/planner/slower_codes.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ops/kernels/products.h"
#include "weights/codes/rotation.h"

namespace braid {
namespace {

enum class Codes { kNone, kInt8, kRotated, kFloat8, kOfFile };

Codes codes_of(const PlannedTensor& t, Quantize asked) {
  if (t.is_rotated) return Codes::kRotated;
  // scales of version 1 would not multiply, whatever is asked for
  if (t.stored_form == Quantize::kInt8V1) return Codes::kOfFile;
  const bool is_quantized = t.kind == PlannedTensor::Kind::kDense && asked != Quantize::kNone;
  if (t.kind == PlannedTensor::Kind::kCodes) return Codes::kInt8;
  if (is_quantized) return asked == Quantize::kFloat8 ? Codes::kFloat8 : Codes::kInt8;
  return t.is_kept_as_stored() || t.is_packed ? Codes::kOfFile : Codes::kNone;
}

bool are_widened(Codes codes, Quantize asked, const CodesMultiplied& by) {
  switch (codes) {
    case Codes::kNone:
      return false;
    case Codes::kInt8:
      return asked != Quantize::kInt8Dynamic || !by.int8;
    case Codes::kRotated:
      return !keeps_rotated_codes(asked) || !by.int8;
    case Codes::kFloat8:
      return !by.float8;
    case Codes::kOfFile:
      break;
  }
  return true;
}

const char* codes_name(Codes codes) {
  switch (codes) {
    case Codes::kInt8:
      return "int8";
    case Codes::kRotated:
      return "int8 (ConvRot)";
    case Codes::kFloat8:
      return "fp8";
    case Codes::kNone:
    case Codes::kOfFile:
      break;
  }
  return "the coding of their file";
}

// What to ask for instead, where the device multiplies such codes.
const char* remedy_for(Codes codes, const CodesMultiplied& by) {
  if (codes == Codes::kInt8 && by.int8) return "; int8-dynamic multiplies the codes";
  if (codes == Codes::kRotated && by.int8) return "; as their file has them, the codes multiply";
  return "";
}

CodesMultiplied by_cpu(std::string name) {
  const bool has_own_products = ops::leads_in_bfloat16();
  return {.device = std::move(name),
          .widens_numbers_too = has_own_products && ops::product_kernels().halves_per_word == 1};
}

}  // namespace

CodesMultiplied codes_multiplied_by(const DeviceSpec& device) {
  if (device.name == "cpu") return by_cpu(device.name);
  return {.device = device.name, .int8 = device.multiplies_int8, .float8 = device.float8_flops > 0};
}

CodesMultiplied codes_multiplied_by(const std::string& name, const Gpu& gpu) {
  return {.device = name,
          .int8 = multiplies_int8(gpu.architecture),
          .float8 = multiplies_float8(gpu.architecture)};
}

CodesMultiplied codes_multiplied_by_this_cpu() { return by_cpu("cpu"); }

std::optional<std::string> why_codes_are_slower(const PlanJob& job, const CodesMultiplied& by) {
  const auto asked = job.memory.quantize;
  const bool is_resident = job.memory.offload.transformer == OffloadMode::kNone;
  if (!is_resident || by.widens_numbers_too || job.dtype == at::kFloat) return {};
  std::int64_t all = 0, most = 0;
  std::map<Codes, std::int64_t> widened;
  for (const auto* const part : job.family->denoisers())
    for (const auto& t : job.tensors->of(*part).tensors) {
      const auto numbers = numbers_of(t, 1);
      const auto codes = codes_of(t, asked);
      all += numbers;
      if (are_widened(codes, asked, by)) widened[codes] += numbers;
    }
  auto sum = std::int64_t(0);
  auto commonest = Codes::kNone;
  for (const auto& [codes, numbers] : widened) {
    sum += numbers;
    if (numbers > most) commonest = codes, most = numbers;
  }
  if (2 * sum < all || all == 0) return {};
  return text_of("the transformer's weights, in ", codes_name(commonest), ", are widened to ",
                 c10::getDtypeNames(job.dtype).first, " before they multiply on ", by.device,
                 ": they take less memory, but steps take longer than with weights of 16 bits",
                 remedy_for(commonest, by));
}

}  // namespace braid
