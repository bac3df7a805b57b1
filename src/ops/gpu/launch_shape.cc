#include "ops/gpu/launch_shape.h"

#include <algorithm>

#include "base/error.h"
#include "ops/gpu/stream.h"

namespace braid::ops::gpu {
namespace {

std::int64_t blocks_for(std::int64_t items, std::int64_t a_block) {
  return (items + a_block - 1) / a_block;
}

bool moves_in(int vector, const at::Tensor& x) {
  const auto size = std::int64_t(x.element_size());
  const auto bytes = std::min<std::int64_t>(kVectorBytes, vector * size);
  if (reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % std::uintptr_t(bytes) != 0)
    return false;
  for (std::int64_t d = 0; d + 1 < x.dim(); ++d)
    if (x.size(d) > 1 && x.stride(d) * size % bytes != 0) return false;
  return x.size(-1) % vector == 0;
}

// Rounds `requested` threads up to whole warps, but to at most `most`.
int threads_for(std::int64_t requested, int most) {
  return int(std::min<std::int64_t>(most, blocks_for(requested, kLanes) * kLanes));
}

Launch checked(const Launch& how) {
  check(how.rows <= kMostRows && how.rows * how.threads <= kMostThreadsOfRows &&
            how.parts <= kMostParts,
        "a kernel for ", how.rows, " rows in ", how.parts, " parts, of ", how.threads,
        " threads each, is beyond what a GPU starts at once");
  return how;
}

}  // namespace

Number number_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat:
      return Number::kFloat32;
    case at::kBFloat16:
      return Number::kBfloat16;
    case at::kHalf:
      return Number::kFloat16;
    default:
      throw Error(text_of("the kernels for GPUs do not compute in ", x.scalar_type()));
  }
}

Rows rows_of(const at::Tensor& x_BLC) {
  return {.data = const_cast<void*>(x_BLC.const_data_ptr()),
          .batch = x_BLC.size(0) == 1 ? 0 : x_BLC.stride(0),
          .token = x_BLC.size(1) == 1 ? 0 : x_BLC.stride(1)};
}

int vector_for(Number number, int narrow, std::initializer_list<at::Tensor> tensors) {
  const int full = full_vector(number);
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& x) { return moves_in(full, x); })
             ? full
             : narrow;
}

Launch launch_over_vectors(Number number, int vector, Shape shape, at::Device device) {
  const auto vectors = shape.width / vector;
  const int threads = threads_for(vectors, kMostThreads<GatedResidual>);
  return checked({.number = number,
                  .vector = vector,
                  .rows = shape.rows,
                  .parts = blocks_for(vectors, threads),
                  .threads = threads,
                  .stream = current_stream(device)});
}

Launch launch_over_numbers(Number number, int vector, std::int64_t count, at::Device device) {
  const auto vectors = count / vector;
  const int threads = threads_for(vectors, kMostThreads<EulerStep>);
  return checked({.number = number,
                  .vector = vector,
                  .rows = blocks_for(vectors, threads),
                  .parts = 1,
                  .threads = threads,
                  .stream = current_stream(device)});
}

Launch launch_over_rows(Number number, int vector, Shape shape, at::Device device) {
  const int kept = vector == 1 ? kVectorsOfRow<1> : kVectorsOfRow<4>;
  return checked(
      {.number = number,
       .vector = vector,
       .rows = shape.rows,
       .parts = 1,
       .threads = threads_for(blocks_for(shape.width / vector, kept), kMostThreads<ModulatedNorm>),
       .stream = current_stream(device)});
}

std::int64_t blocks_of_heads(std::int64_t count, int lanes) {
  check(count <= kMostRows, "a kernel for ", count, " heads is beyond a GPU's grid");
  return blocks_for(count, kMostThreads<NormRotate> / lanes);
}

Launch launch_over_heads(Number number, int vector, const NormRotate& work, at::Device device) {
  return checked({.number = number,
                  .vector = vector,
                  .rows = work.num_blocks,
                  .parts = 1,
                  .threads = kMostThreads<NormRotate>,
                  .stream = current_stream(device)});
}

int lanes_for(std::int64_t width, int vector) {
  int lanes = 1;
  while (lanes < kLanes && lanes * vector < width) lanes *= 2;
  return lanes;
}

}  // namespace braid::ops::gpu
