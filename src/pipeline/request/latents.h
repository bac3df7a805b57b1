// Latents that enter and leave the library.
#pragma once

#include <ATen/core/Tensor.h>

#include "braid/latents.h"

namespace braid {

// A copy in float32.
Latents latents_of(const at::Tensor& x);

// Throws InputError, calling them `name`, unless all values are finite.
void check_finite(const char* name, const std::vector<float>& values);

// The same values with this number of dimensions, on the host. Throws InputError, calling them
// `name`, if there are more or fewer dimensions, not as many values as the shape says, or values
// that are not finite.
at::Tensor tensor_in(const char* name, const Latents& latents, std::int64_t dims);

// Throws InputError, calling them `what`, unless they have one of these shapes and as many values.
void check_latents(const std::string& what, const Latents& latents,
                   const std::vector<at::IntArrayRef>& shapes);

// `after` as a tensor, what a caller made of `before`. Throws InputError as check_latents() does,
// and check_finite() unless `before` was not finite itself: weights may be damaged, or float16 too
// narrow for them.
at::Tensor changed_latents(const char* name, const Latents& after, const at::Tensor& before);

}  // namespace braid
