// Writes tensors as the bytes of a safetensors file.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace braid {

// Accepts any strides and devices. Equal tensors and notes give equal bytes. Notes are the file's
// metadata, to which the "format" that transformers asks for is added. Tensors that nobody else
// holds are freed one after another, so that a large file is not in memory twice. Throws InputError
// for a dtype the format lacks.
std::string write_safetensors(std::map<std::string, at::Tensor> tensors,
                              const std::map<std::string, std::string>& notes = {});

}  // namespace braid
