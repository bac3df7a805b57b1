// Latents that enter and leave the library.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/latents.h"

namespace braid {

// A copy in float32.
Latents latents_of(const at::Tensor& x);

// The same values with this number of dimensions, on the host. Throws InputError, calling them
// `name`, if there are more or fewer dimensions, or not as many values as the shape says.
at::Tensor tensor_in(const char* name, const Latents& latents, std::int64_t dims);

// Throws InputError, calling them `what`, unless they have one of these shapes and as many values.
void check_latents(const std::string& what, const Latents& latents,
                   const std::vector<at::IntArrayRef>& shapes);

}  // namespace braid
