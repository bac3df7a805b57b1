#include "pipeline/planner/costs/picture_memory.h"

#include <algorithm>

#include "ops/attention_kernel.h"
#include "pipeline/request/settings.h"

namespace braid {
namespace {

// Image rows and the buffer they are convolved in: tiles and taps, or oneDNN's formats of them.
constexpr std::int64_t kBandBytes = 5 * (16 << 20);

bool is_tiled(const PlanJob& job) { return is_tiled(job.tiling, job.size()); }

// Whether convolutions run in bands of rows, as in ops/cpu/image.cc.
bool has_bands(const PlanJob& job) { return job.is_on_host && job.dtype != at::kHalf; }

// Channels live at the decoder's finest level, in its first block: the block's input and the tensor
// between its convolutions. A device that computes whole norms also holds either the input's norm,
// or the other norm, the shortcut and the result.
std::int64_t decoded_channels(const PlanJob& job) {
  const auto& widths = job.family->description().vae.decoder_widths();
  const auto front = widths.front(), in = widths[std::min<std::size_t>(1, widths.size() - 1)];
  return has_bands(job) ? in + 2 * front : in + front + std::max(in, 3 * front);
}

// The coarsest level's attention, one head over all of its pixels, where a GPU's library writes out
// the scores (heads of 512 numbers on RDNA3): those of some queries at a time, float32, before and
// after their softmax and as weights, beside the pixels' q, k and v.
std::int64_t attended_bytes(const PlanJob& job, std::int64_t pixels) {
  const auto& vae = job.family->description().vae;
  if (job.is_on_host || !vae.mid_attention) return 0;
  const auto tokens = pixels / (vae.downscale() * vae.downscale());
  const auto queries = std::min(tokens, ops::queries_at_once(/*heads=*/1, tokens));
  constexpr std::int64_t kCopies = 3;
  return kCopies * queries * tokens * std::int64_t(sizeof(float)) +
         4 * tokens * vae.widths.back() * job.element_bytes();
}

}  // namespace

std::int64_t decoding_bytes(const PlanJob& job) {
  const auto picture = std::int64_t(job.width) * job.height;
  const auto side = job.family->description().vae.sample_size, tile = side * side;
  const auto pixels = is_tiled(job) ? std::min(picture, tile) : picture;
  const auto bytes = pixels * decoded_channels(job) * job.element_bytes();
  if (has_bands(job)) return bytes + std::min(bytes, kBandBytes);
  return std::max(bytes, attended_bytes(job, pixels));
}

// The encoder's first blocks: a block's input and the tensor between its convolutions; on a device
// that computes whole norms, also one norm and the result.
std::int64_t picture_encoding_bytes(const PlanJob& job) {
  const auto& vae = job.family->description().vae;
  const auto tile = vae.sample_size * vae.sample_size;
  const auto all = job.pictures.encoded_pixels;
  if (all == 0) return 0;
  const auto pixels = is_tiled(job) ? std::min(all, tile) : all;
  const auto bytes =
      std::max(pixels * (has_bands(job) ? 2 : 4) * vae.widths.front() * job.element_bytes(),
               attended_bytes(job, pixels));
  return encoder_parameters(vae) * job.element_bytes() + bytes +
         (has_bands(job) ? std::min(bytes, kBandBytes) : 0);
}

}  // namespace braid
