#include "pipeline/sampling/noise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace braid {

at::Generator generator_of(std::uint64_t seed) { return at::detail::createCPUGenerator(seed); }

Tensor draw_noise(Generators generators, at::IntArrayRef shape, at::ScalarType dtype) {
  auto sizes = shape.vec();
  sizes.insert(sizes.begin(), 0);
  std::vector<Tensor> noise = {at::empty(sizes, dtype)};
  sizes.front() = 1;
  for (const auto& generator : generators) noise.push_back(at::randn(sizes, generator, dtype));
  return at::cat(noise);
}

}  // namespace braid
