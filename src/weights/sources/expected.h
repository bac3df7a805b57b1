// Requirements on stored tensors that become one of ours. Each check throws InputError that begins
// with `source` and names the tensor.
#pragma once

#include <string>
#include <vector>

#include "weights/files/checkpoint.h"

namespace braid {

std::string list_of(const std::vector<std::string>& names);  // "'a', 'b'"

void check_floating(const std::vector<std::shared_ptr<const StoredTensor>>& parts,
                    const std::string& source);

// Whether it is a tensor of codes with separate scales; whether all are.
bool holds_codes(const StoredTensor& stored);
bool are_codes(const std::vector<std::shared_ptr<const StoredTensor>>& parts);

// Checks that the stored tensors together have the rows of `shape` and agree on the other dims.
void check_shape(const std::vector<std::shared_ptr<const StoredTensor>>& parts,
                 at::IntArrayRef shape, const std::string& source);

}  // namespace braid
