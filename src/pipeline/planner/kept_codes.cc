#include "pipeline/planner/kept_codes.h"

#include "base/error.h"
#include "weights/codes/int8.h"
#include "weights/codes/rotation.h"

namespace braid {
namespace {

// Rotated codes may be asked for as the numbers that they stand for.
bool stay_in_another_form(const PlannedTensor& t, Quantize asked) {
  if (t.kind != PlannedTensor::Kind::kCodes) return false;
  if (t.is_rotated) return asked == Quantize::kFloat8;
  return form_of_codes(t.stored_form, asked) != asked;
}

}  // namespace

std::vector<std::string> kept_codes(const PlanJob& job, const Memory& asked) {
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < job.tensors->parts.size(); ++i) {
    const auto& part = *job.tensors->parts[i];
    const auto form = part.form(asked);
    if (form == Quantize::kNone) continue;
    int all = 0, kept = 0;
    for (const auto& t : job.tensors->tensors[i].tensors) {
      if (t.kind != PlannedTensor::Kind::kNumbers) ++all;
      if (stay_in_another_form(t, form)) ++kept;
    }
    if (kept == 0) continue;
    const auto* const field = part.role == Part::Role::kText ? "quantize_text" : "quantize";
    sentences.push_back(text_of("`", field, "` does not apply to ", kept, " of ", all,
                                " matrices of ", part.label,
                                ": its files have them in another 8-bit form, which they keep"));
  }
  return sentences;
}

}  // namespace braid
