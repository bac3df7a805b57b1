// Writes tensors as the bytes of a safetensors file.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace braid {

// Accepts any strides and devices. Equal tensors give equal bytes. Throws InputError for a dtype
// the format lacks.
std::string write_safetensors(const std::map<std::string, at::Tensor>& tensors);

}  // namespace braid
