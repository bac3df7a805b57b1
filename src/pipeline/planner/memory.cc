#include "pipeline/planner/memory.h"

#include <algorithm>

#include "base/cpu.h"
#include "base/error.h"
#include "pipeline/planner/held.h"
#include "pipeline/planner/traffic.h"

namespace braid {
namespace {

constexpr std::int64_t kAutoTilingPixels = 2048 * 2048;  // as generate.cc decides
// Rows of an image and what they are convolved in: tiles and taps, or oneDNN's forms of them.
constexpr std::int64_t kBandBytes = 5 * (16 << 20);
constexpr std::int64_t kRankBytes = 80'000'000;  // buffers of products, what malloc keeps

const ModelTensors& tensors_of(const PlanJob& job) {
  check(job.tensors != nullptr, "the tensors of a plan's model are not known yet");
  return *job.tensors;
}

// The ranks that have the text encoders, and share them.
int text_ranks(const PlanJob& job, const Grid& grid) {
  return job.text == SharedText::kYes ? grid.tp : 1;
}

bool is_tiled(const PlanJob& job) {
  if (job.tiling != VaeTiling::kAuto) return job.tiling == VaeTiling::kOn;
  return std::int64_t(job.width) * job.height > kAutoTilingPixels;
}

// Whether convolutions are made in bands of rows, as ops/cpu_image.cc takes them.
bool has_bands(const PlanJob& job) { return job.is_on_host && job.dtype != at::kHalf; }

// Channels that live at the finest level of the decoder, in its first block: the block's input and
// what is between its convolutions and, of a device that makes whole norms, either the input's norm
// or the other's, the shortcut and the result.
std::int64_t decoded_channels(const PlanJob& job) {
  const auto& widths = job.model.vae.widths;
  const auto front = widths.front(), in = widths[std::min<std::size_t>(1, widths.size() - 1)];
  return has_bands(job) ? in + 2 * front : in + front + std::max(in, 3 * front);
}

std::int64_t decoding_bytes(const PlanJob& job) {
  const auto picture = std::int64_t(job.width) * job.height;
  const auto tile = job.model.vae.sample_size * job.model.vae.sample_size;
  const auto pixels = is_tiled(job) ? std::min(picture, tile) : picture;
  const auto bytes = pixels * decoded_channels(job) * job.element_bytes();
  return has_bands(job) ? bytes + std::min(bytes, kBandBytes) : bytes;
}

// T5's feed-forward layer, gate, its GELU and the product, and its attention's scores of all heads,
// in float32 and as weights.
std::int64_t encoding_bytes(const PlanJob& job, int sharers) {
  const auto& t5 = job.model.t5;
  const auto tokens = std::int64_t(job.text_tokens);
  const auto wide = tokens * (3 * t5.mlp_hidden / sharers + 2 * t5.hidden) * job.element_bytes();
  const auto scores = 3 * t5.num_heads / sharers * tokens * tokens * job.element_bytes();
  return std::max(wide, scores);
}

// Whether products of codes are summed in a tensor of their own, as ops/linear.cc does it.
bool has_sums_of_codes(const PlanJob& job) {
  const bool has_kernel = job.is_on_host && !read_cpu().has("avx512_vnni");
  return job.memory.quantize == Quantize::kInt8Dynamic && !has_kernel;
}

// A token behind such a sum, in a single block's first layer: the residual stream, its norm and the
// codes of that, the sums, and what they become, less the keys and values that are counted apart.
std::int64_t summed_bytes(const PlanJob& job, const Grid& grid) {
  const auto hidden = job.model.flux.hidden(), e = job.element_bytes();
  return (2 * e + 1) * hidden + (7 * (4 + e) - 2 * e) * hidden / grid.tp;
}

// Before a single block's last layer: per token and hidden width the residual stream and the
// result, and of this rank's share [q k v | mlp] 7, rotated q 1, attended 1 and [attended | mlp] 5,
// less the v that is counted among keys and values.
std::int64_t activation_bytes(const PlanJob& job, const Grid& grid, const StepShare& s) {
  constexpr std::int64_t kWhole = 2, kShared = 13;
  const auto hidden = job.model.flux.hidden();
  const auto numbers = (kWhole * hidden + kShared * hidden / grid.tp) * job.element_bytes();
  return s.batch * s.tokens() *
         (has_sums_of_codes(job) ? std::max(numbers, summed_bytes(job, grid)) : numbers);
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

// Whether codes become numbers before they multiply, as ops/linear.cc does it.
bool widens_codes(const PlanJob& job, Quantize form) {
  if (form == Quantize::kInt8Dynamic) return false;
  return !job.is_on_host || job.dtype != at::kBFloat16 || read_cpu().has_bfloat16();
}

struct Kept {
  OffloadMode mode;
  Quantize quantize = Quantize::kNone;
  int resident = 0;
};

// Where weights of a part are under job.memory, added to what the rank has. Returns bytes that are
// the part's own on the device.
std::int64_t hold(const PlanJob& job, const PartPages& pages, const Kept& kept, RankBytes& bytes) {
  if (widens_codes(job, kept.quantize)) bytes.widened = std::max(bytes.widened, pages.widened);
  bytes.largest_tensor = std::max(bytes.largest_tensor, pages.largest_tensor);
  if (pages.groups.empty()) return pages.outside;
  bytes.pages += pages.paged();
  for (const auto page : pages.groups) bytes.largest_page = std::max(bytes.largest_page, page);
  if (kept.mode == OffloadMode::kModel) {
    bytes.shared_slot = std::max(bytes.shared_slot, pages.paged());
    return pages.outside;
  }
  auto offload = job.memory.offload;
  offload.resident = kept.resident;
  if (kept.mode == OffloadMode::kSequential) offload.prefetch = 0;
  const auto where = job.is_on_host ? SlotsOf::kHost : SlotsOf::kDevice;
  bytes.resident_pages += pages.paged() - copied_bytes(pages, offload);
  const auto slots = slot_bytes(pages, offload, where);
  bytes.slots += slots;
  return pages.outside + slots;
}

// CLIP and T5 share their slots.
PartPages text_pages(const PlanJob& job, int sharers) {
  const auto& o = job.memory.offload;
  auto pages =
      pages_of(tensors_of(job).clip, {.tp = sharers}, {.offload = o.text, .blocks = o.blocks});
  const auto t5 =
      pages_of(tensors_of(job).t5, {.tp = sharers},
               {.quantize = job.memory.quantize_text, .offload = o.text, .blocks = o.blocks});
  pages.outside += t5.outside;
  pages.widened = std::max(pages.widened, t5.widened);
  pages.largest_tensor = std::max(pages.largest_tensor, t5.largest_tensor);
  pages.groups.insert(pages.groups.end(), t5.groups.begin(), t5.groups.end());
  return pages;
}

void hold_text(const PlanJob& job, int sharers, RankBytes& bytes) {
  const auto mode = job.memory.offload.text;
  if (mode != OffloadMode::kModel) {
    bytes.text_encoders =
        hold(job, text_pages(job, sharers), {mode, job.memory.quantize_text}, bytes);
    return;
  }
  for (const auto* const part : {&tensors_of(job).clip, &tensors_of(job).t5}) {
    const auto quantize = part == &tensors_of(job).t5 ? job.memory.quantize_text : Quantize::kNone;
    const auto pages = pages_of(*part, {.tp = sharers}, {.quantize = quantize, .offload = mode});
    bytes.text_encoders += hold(job, pages, {mode, quantize}, bytes);
  }
}

void add_transformer(const PlanJob& job, const Grid& grid, int rank, const Stage& stage,
                     RankBytes& bytes) {
  auto share = share_of_step(job, grid, rank);
  share.batch /= items_of_batch(job, grid);
  const auto& o = job.memory.offload;
  const auto pages = pages_of(
      tensors_of(job).transformer,
      {.tp = grid.tp, .begin = stage.first_block, .count = stage.num_double + stage.num_single},
      {.quantize = job.memory.quantize, .offload = o.transformer, .blocks = o.blocks});
  bytes.transformer = hold(job, pages, {o.transformer, job.memory.quantize, o.resident}, bytes);
  bytes.activations = activation_bytes(job, grid, share);
  bytes.keys_values = keys_values_bytes(job, grid, share);
  bytes.staging = staging_bytes(job, grid, share);
}

}  // namespace

std::int64_t RankBytes::peak() const {
  return weights() + std::max({encoding, activations + keys_values + staging + widened, decoding});
}

RankBytes bytes_of_others(const PlanJob& job, const Grid& grid, int rank) {
  RankBytes bytes;
  const int sharers = text_ranks(job, grid);
  if (rank < sharers) {
    bytes.encoding = encoding_bytes(job, sharers);
    hold_text(job, sharers, bytes);
  }
  if (rank > 0 && job.decode == SharedDecode::kNo) return bytes;
  const auto mode = job.memory.offload.vae;
  bytes.vae = hold(job, pages_of(tensors_of(job).vae, {}, {.offload = mode}), {mode}, bytes);
  // A picture that is not cut into tiles is decoded by one rank.
  const int pictures = std::min(job.num_pictures, job.batch_size * grid.dp);
  if (is_tiled(job) || rank < pictures) bytes.decoding = decoding_bytes(job);
  return bytes;
}

RankBytes predict_bytes(const PlanJob& job, const Grid& grid, int rank, const Stage& stage) {
  auto bytes = bytes_of_others(job, grid, rank);
  add_transformer(job, grid, rank, stage, bytes);
  return bytes;
}

RankBytes predict_transformer_bytes(const PlanJob& job, const Grid& grid, int rank,
                                    const Stage& stage) {
  RankBytes bytes;
  add_transformer(job, grid, rank, stage, bytes);
  return bytes;
}

std::int64_t host_peak(const PlanJob& job, const RankBytes& b) {
  const auto& o = job.memory.offload;
  const bool in_files = !o.folder.empty();
  const auto kept = in_files ? 0 : b.pages - b.resident_pages;
  // All pages are made before the first one moves to where it stays. One more is there for a
  // moment: as its tensors, or as a copy.
  const auto one_more = std::max(b.largest_tensor, in_files ? 0 : b.largest_page);
  const auto while_loading = (in_files ? b.largest_page : b.pages) + one_more;
  const auto outside = b.weights() - b.slots - b.shared_slot;
  const auto stays = std::min(kRankBytes, b.activations);
  if (job.is_on_host) return stays + std::max(kept + b.peak(), outside + while_loading);
  const bool is_staged = in_files || o.pin == Pin::kOnTheFly;
  return std::max(kept + (is_staged ? b.slots : 0), while_loading);
}

}  // namespace braid
