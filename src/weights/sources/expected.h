// What stored tensors must be like to become one of ours. Each check throws InputError that begins
// with `source` and names the tensor.
#pragma once

#include <string>
#include <vector>

#include "weights/files/checkpoint.h"

namespace braid {

std::string list_of(const std::vector<std::string>& names);  // "'a', 'b'"

void check_floating(const std::vector<const StoredTensor*>& parts, const std::string& source);

// Whether they are codes, which have scales beside them.
bool are_codes(const std::vector<const StoredTensor*>& parts);

// The stored tensors have the rows of `shape` between them, and agree on the rest.
void check_shape(const std::vector<const StoredTensor*>& parts, at::IntArrayRef shape,
                 const std::string& source);

}  // namespace braid
