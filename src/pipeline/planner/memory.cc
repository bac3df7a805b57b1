#include "pipeline/planner/memory.h"

#include <algorithm>

#include "pipeline/planner/traffic.h"

namespace braid {
namespace {

constexpr std::int64_t kAutoTilingPixels = 2048 * 2048;  // as generate.cc decides

std::int64_t text_encoder_bytes(const PlanJob& job, const Grid& grid, int rank) {
  const auto& m = job.model;
  const int sharers = job.text == SharedText::kYes ? grid.tp : 1;
  if (rank >= sharers) return 0;
  const auto count = count_t5(m.t5).of_rank(sharers) + count_clip(m.clip).of_rank(sharers);
  const bool widens = job.dtype == at::kHalf;  // T5's last layers stay float32
  return count * job.element_bytes() + (widens ? 2 * count_t5_down(m.t5).of_rank(sharers) : 0);
}

bool is_tiled(const PlanJob& job) {
  return std::int64_t(job.width) * job.height > kAutoTilingPixels;
}

// At the finest level of the decoder: its input, the norm of that, and the first convolution's
// output. 2.6 GB for each million pixels in float32.
std::int64_t decoding_bytes(const PlanJob& job) {
  const auto& widths = job.model.vae.widths;
  const auto coarser = widths[std::min<std::size_t>(1, widths.size() - 1)];
  const auto picture = std::int64_t(job.width) * job.height;
  const auto tile = job.model.vae.sample_size * job.model.vae.sample_size;
  const auto pixels = is_tiled(job) ? std::min(picture, tile) : picture;
  return pixels * (2 * coarser + widths.front()) * job.element_bytes();
}

// A single block is the widest: per token and hidden width, the residual stream, its norm, the sum
// and the result; and of this rank's share [q k v | mlp] 7, rotated q 1, attended 1, gelu 4 and
// [attended | mlp] 5, less the k and v that are counted as such.
std::int64_t activation_bytes(const PlanJob& job, const Grid& grid, const StepShare& s) {
  constexpr std::int64_t kWhole = 4, kShared = 16;
  const auto hidden = job.model.flux.hidden();
  return s.batch * s.tokens() * (kWhole * hidden + kShared * hidden / grid.tp) *
         job.element_bytes();
}

std::int64_t keys_values_bytes(const PlanJob& job, const Grid& grid, const StepShare& s) {
  const auto token = 2 * s.batch * s.attended_heads * job.model.flux.head_width;
  const auto mine = token * s.group_tokens * job.element_bytes();
  if (grid.ring == 1) return mine;
  const auto all = token * (job.image_tokens() + job.text_tokens) * job.element_bytes();
  if (job.ring_form == RingForm::kGather) return mine + all;
  const auto partial_sums = token * s.group_tokens * 4;  // float32: so far, and of this block
  return 2 * mine + partial_sums;
}

std::int64_t staging_bytes(const PlanJob& job, const Grid& grid, const StepShare& s) {
  const auto e = job.element_bytes();
  const auto reduced = grid.tp > 1 ? s.batch * s.tokens() * job.model.flux.hidden() * e : 0;
  const auto sent = s.heads * s.tokens(), received = s.attended_heads * s.group_tokens;
  const auto traded =
      grid.ulysses > 1 ? 3 * s.batch * (sent + received) * job.model.flux.head_width * e : 0;
  return std::max(reduced, traded);
}

}  // namespace

std::int64_t RankBytes::peak() const {
  return weights() + std::max(activations + keys_values + staging, decoding);
}

RankBytes bytes_of_others(const PlanJob& job, const Grid& grid, int rank) {
  RankBytes bytes{.text_encoders = text_encoder_bytes(job, grid, rank)};
  if (rank > 0 && job.decode == SharedDecode::kNo) return bytes;
  bytes.vae = count_vae_decoder(job.model.vae) * job.element_bytes();
  // A picture that is not cut into tiles is decoded by one rank.
  const int pictures = std::min(job.num_pictures, job.batch_size * grid.dp);
  if (is_tiled(job) || rank < pictures) bytes.decoding = decoding_bytes(job);
  return bytes;
}

RankBytes predict_bytes(const PlanJob& job, const Grid& grid, int rank, const Stage& stage) {
  auto share = share_of_step(job, grid, rank);
  share.batch /= items_of_batch(job, grid);
  auto bytes = bytes_of_others(job, grid, rank);
  const auto parameters =
      parameters_of(stage, count_flux(job.model.flux, job.modulation)).of_rank(grid.tp);
  bytes.transformer = parameters * job.element_bytes();
  bytes.activations = activation_bytes(job, grid, share);
  bytes.keys_values = keys_values_bytes(job, grid, share);
  bytes.staging = staging_bytes(job, grid, share);
  return bytes;
}

}  // namespace braid
