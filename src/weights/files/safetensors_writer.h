// Tensors to the bytes of a safetensors file.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace braid {

// Tensors of any strides, on any device. The same tensors give the same bytes. Throws InputError
// for a dtype that the format does not have.
std::string write_safetensors(const std::map<std::string, at::Tensor>& tensors);

}  // namespace braid
