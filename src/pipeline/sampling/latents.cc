#include "pipeline/sampling/latents.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace braid {

at::Generator generator_of(std::uint64_t seed) { return at::detail::createCPUGenerator(seed); }

Tensor draw_noise(std::span<const at::Generator> generators, LatentShape shape,
                  at::ScalarType dtype) {
  const std::vector<std::int64_t> none = {0, shape.channels, shape.height, shape.width};
  std::vector<Tensor> noise = {at::empty(none, dtype)};
  for (const auto& generator : generators)
    noise.push_back(at::randn({1, shape.channels, shape.height, shape.width}, generator, dtype));
  return at::cat(noise);
}

Tensor pack(const Tensor& latents_BZHW) {
  const auto patches = latents_BZHW.unflatten(3, {-1, 2}).unflatten(2, {-1, 2});  // B Z h 2 w 2
  return patches.permute({0, 2, 4, 1, 3, 5}).flatten(3).flatten(1, 2);
}

Tensor unpack(const Tensor& tokens_BNC, LatentShape shape) {
  const auto patches =
      tokens_BNC.unflatten(2, {shape.channels, 2, 2}).unflatten(1, {shape.height / 2, -1});
  return patches.permute({0, 3, 1, 4, 2, 5}).flatten(4).flatten(2, 3);  // B h w Z 2 2 before
}

Tensor position_ids(LatentShape shape, at::Device device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const auto rows = at::arange(shape.height / 2, options).unsqueeze(1);
  const auto columns = at::arange(shape.width / 2, options).unsqueeze(0);
  const auto grid = at::broadcast_tensors({at::zeros({1, 1}, options), rows, columns});
  return at::stack(grid, -1).flatten(0, 1);
}

}  // namespace braid
