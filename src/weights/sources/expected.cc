#include "weights/sources/expected.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "weights/files/other_codings.h"

namespace braid {

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  return list;
}

void check_floating(const std::vector<std::shared_ptr<const StoredTensor>>& parts,
                    const std::string& source) {
  for (const auto& part : parts) {
    const bool may_be_codes = part->entry.name.ends_with(".weight");
    require(at::isFloatingType(part->dtype()), source, ": tensor '", part->entry.name,
            "' should hold floating-point numbers, its dtype is ",
            element_type_name(part->entry.type),
            may_be_codes ? text_of(": Braid cannot read codes of that dtype, ", kFilesToTake) : "");
  }
}

bool holds_codes(const StoredTensor& stored) {
  return stored.entry.type == ElementType::kInt8 && !stored.is_quantized();
}

bool are_codes(const std::vector<std::shared_ptr<const StoredTensor>>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [](const auto& part) { return holds_codes(*part); });
}

void check_shape(const std::vector<std::shared_ptr<const StoredTensor>>& parts,
                 at::IntArrayRef shape, const std::string& source) {
  std::int64_t rows = 0;
  std::vector<std::string> names;
  for (const auto& part : parts) {
    const at::IntArrayRef has(part->entry.shape);
    names.push_back(part->entry.name);
    const bool agrees = has.size() == shape.size() &&
                        (shape.empty() || has.slice(1) == shape.slice(1)) &&
                        (parts.size() > 1 || has == shape);
    require(agrees, source, ": tensor '", part->entry.name, "' should have the shape ", shape,
            parts.size() > 1 ? " together with its neighbours, it has " : ", it has ", has);
    rows += has.empty() ? 1 : has[0];
  }
  if (parts.size() == 1) return;  // a scalar has no rows to add up
  require(rows == shape[0], source, ": the tensors ", list_of(names), " should have ", shape[0],
          " rows together, they have ", rows);
}

}  // namespace braid
