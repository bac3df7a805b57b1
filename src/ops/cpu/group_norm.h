// Group norm of one image on a CPU, some rows at a time, with the whole image's statistics.
#pragma once

#include <memory>
#include <vector>

#include "ops/cpu/pixel_run.h"
#include "ops/cpu/tensor_rows.h"
#include "ops/image.h"

namespace braid::ops::cpu {

// Channel c of the normed image is x * scale[c] + shift[c].
struct Affine {
  std::vector<float> scale, shift;
};

Affine affine_of(const Tensor& x_CHW, const GroupNormParts& norm);

// silu() of the normed rows, into `to_CHW` of their size, in the same dtype or float32.
void make_normed_rows(const Tensor& x_CHW, const Affine& affine, RowRange rows,
                      const Tensor& to_CHW);

// silu() of the normed image, run by run.
TakePixels take_normed(const Tensor& x_CHW, std::shared_ptr<const Affine> affine);

}  // namespace braid::ops::cpu
