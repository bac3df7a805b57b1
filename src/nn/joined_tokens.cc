#include "nn/joined_tokens.h"

#include <ATen/ATen.h>

#include "base/free_memory.h"

namespace braid {
namespace {

// Smaller models take hardly longer to compute a block than to give back memory.
constexpr std::size_t kLarge = 4 << 20;  // bytes

}  // namespace

Tensor joined_tokens(Tensor& text_BTC, Tensor& image_BIC) {
  const auto tokens = at::cat({text_BTC, image_BIC}, 1);
  text_BTC.reset();
  image_BIC.reset();
  if (tokens.is_cpu() && tokens.nbytes() >= kLarge) give_back_free_memory();
  return tokens;
}

}  // namespace braid
