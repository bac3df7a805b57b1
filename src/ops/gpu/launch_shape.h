// Launch parameters for the tensors at hand.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>

#include "ops/gpu/launch.h"

namespace braid::ops::gpu {

Number number_of(const at::Tensor& x);

// The rows of x [B L C].
Rows rows_of(const at::Tensor& x_BLC);

// The numbers a thread can move at once: every row of every tensor begins and ends on a multiple of
// this. `narrow` if that fails for full vectors.
int vector_for(Number number, int narrow, std::initializer_list<at::Tensor> tensors);

struct Shape {
  std::int64_t rows, width;
};
// Each thread moves one vector.
Launch launch_over_vectors(Number number, int vector, Shape shape, at::Device device);
// The same for numbers without rows, possibly more than one row of blocks can hold.
Launch launch_over_numbers(Number number, int vector, std::int64_t count, at::Device device);
// The threads of a block share a row.
Launch launch_over_rows(Number number, int vector, Shape shape, at::Device device);
// Some lanes share a head and a block has several heads of one part: the blocks of `count` heads,
// and the launch for work.num_blocks.
std::int64_t blocks_of_heads(std::int64_t count, int lanes);
Launch launch_over_heads(Number number, int vector, const NormRotate& work, at::Device device);
// The lanes that share a head: one per vector of the head, at most kLanes.
int lanes_for(std::int64_t width, int vector);

}  // namespace braid::ops::gpu
