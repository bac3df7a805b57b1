#include "nn/joined_tokens.h"

#include <ATen/ATen.h>

#include "base/free_memory.h"

namespace braid {
namespace {

// Smaller models take hardly longer to compute a block than to give back memory.
constexpr std::size_t kLarge = 4 << 20;  // bytes

}  // namespace

Tensor image_tokens(const DenoiserInput& in) {
  const auto& noise_BNC = in.noise.x_BLC;
  std::vector<Tensor> runs = {in.extra_BLC.defined() ? at::cat({noise_BNC, in.extra_BLC}, -1)
                                                     : noise_BNC};
  for (const auto& reference : in.references) runs.push_back(reference.x_BLC);
  return runs.size() == 1 ? runs.front() : at::cat(runs, 1);
}

Tensor joined_tokens(Tensor& text_BTC, Tensor& image_BIC) {
  const auto tokens = at::cat({text_BTC, image_BIC}, 1);
  text_BTC.reset();
  image_BIC.reset();
  if (tokens.is_cpu() && tokens.nbytes() >= kLarge) give_back_free_memory();
  return tokens;
}

Tensor one_behind_other(const Tensor& first_BLHD, const Tensor& second_BLHD) {
  const auto &a = first_BLHD, &b = second_BLHD;
  const auto &longer = a.size(1) > 1 ? a : b, &other = a.size(1) > 1 ? b : a;
  const auto row = longer.stride(1);  // a single token's says nothing
  const bool adjoin = a.size(0) == 1 && b.size(0) == 1 && a.is_alias_of(b) &&
                      a.strides().slice(2) == b.strides().slice(2) &&
                      (other.size(1) == 1 || other.stride(1) == row) &&
                      b.storage_offset() == a.storage_offset() + a.size(1) * row;
  if (!adjoin) return at::cat({a, b}, 1);
  auto shape = a.sizes().vec();
  shape[1] += b.size(1);
  return a.as_strided(shape, longer.strides());
}

}  // namespace braid
