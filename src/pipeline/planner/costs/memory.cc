#include "pipeline/planner/costs/memory.h"

#include <algorithm>

#include "base/error.h"
#include "comm/reduce.h"
#include "nn/attention.h"
#include "pipeline/planner/costs/denoisers.h"
#include "pipeline/planner/costs/picture_memory.h"
#include "pipeline/planner/costs/traffic.h"
#include "pipeline/planner/costs/widened.h"
#include "pipeline/request/settings.h"
#include "weights/upload.h"

namespace braid {
namespace {

constexpr std::int64_t kRankBytes = 80'000'000;  // scratch of products, and what malloc retains

const ModelTensors& tensors_of(const PlanJob& job) {
  check(job.tensors != nullptr, "the tensors of a plan's model are not known yet");
  return *job.tensors;
}

PartPages pages_of(const PlanJob& job, const Part& part, const PartShare& share,
                   const PartForm& form) {
  return job.figures->pages(tensors_of(job).of(part), share, form);
}

std::int64_t encoding_bytes(const PlanJob& job, int sharers) {
  std::int64_t most = 0;
  for (const auto* part : job.family->text_parts())
    most = std::max(most, part->live_with(job.text_tokens, job.pictures.tokens_read, sharers));
  return most * job.element_bytes();
}

// Whether products of codes are summed in a tensor of their own, as in ops/linear.cc.
bool has_sums_of_codes(const PlanJob& job) { return runs_int8_products(job) && !job.is_on_host; }

// Bytes per token after such a sum, in a block's widest layer: the residual stream, its norm and
// the codes of that, the sums, and what they become, minus the keys and values counted separately.
std::int64_t summed_bytes(const PlanJob& job, const Degrees& grid, const BlockCost& kind) {
  const auto& shape = job.shape();
  const auto e = job.element_bytes();
  const auto keys_values = 2 * shape.num_kv_heads * shape.head_width;
  return (2 * e + 1) * shape.hidden +
         (std::int64_t(kind.widest_output) * (4 + e) - keys_values * e) / grid.tp;
}

// The kinds of blocks of a stage, and those that run before the first step.
std::vector<BlockCost> kinds_of(const DenoiserShape& shape, const Stage& stage) {
  std::vector<BlockCost> kinds;
  std::int64_t begin = 0;
  for (const auto& kind : shape.blocks) {
    const auto end = begin + kind.count;
    const bool is_of_stage =
        begin < stage.first_block + stage.num_blocks && stage.first_block < end;
    if (kind.count > 0 && (is_of_stage || kind.use == BlockUse::kOncePerPicture))
      kinds.push_back(kind);
    begin = end;
  }
  return kinds;
}

// Counts the kind of block that needs most, with the tokens that it sees.
std::int64_t activation_bytes(const PlanJob& job, const Degrees& grid, const StepShare& s,
                              const Stage& stage) {
  std::int64_t most = 0;
  for (const auto& kind : kinds_of(job.shape(), stage)) {
    const auto numbers = std::int64_t(kind.peak_elements.of_heads(s.heads, job.shape().num_heads)) *
                         job.element_bytes();
    const auto of_token =
        std::max(numbers, has_sums_of_codes(job) ? summed_bytes(job, grid, kind) : 0);
    most =
        std::max(most, std::max(s.own_tokens.of(kind), s.tokens_before_steps.of(kind)) * of_token);
  }
  return s.batch * most;
}

// attention_by_spans() holds a mask of the pairs that it looks at together, and LibTorch copies it
// in float32.
std::int64_t mask_bytes(const PlanJob& job, const StepShare& s) {
  if (job.shape().text != TextTokens::kPrefix) return 0;
  constexpr std::int64_t kPair = 1 + 4;
  const auto queries = std::max(s.query_tokens.prefix(), s.tokens_before_steps.prefix());
  return kPair * std::min(kMaskedPairs, queries * all_keys(job).prefix());
}

std::int64_t keys_values_bytes(const PlanJob& job, const Degrees& grid, const StepShare& s) {
  const auto token = 2 * s.batch * s.attended_heads.kept_kv() * job.shape().head_width;
  const auto crossed = 2 * s.batch * s.kv_heads * job.shape().head_width * s.key_tokens.crossed *
                       job.element_bytes();
  const auto mine = token * s.key_tokens.all() * job.element_bytes() + crossed;
  if (grid.ring == 1) return mine;
  // its own and what it sends of them; everyone's, as they arrive and joined
  const auto gathered = 2 * mine + 2 * token * all_keys(job).all() * job.element_bytes();
  if (job.layout.ring_form == RingForm::kGather) return gathered;
  // float32: the sum so far, and this block's
  const auto partial_sums =
      2 * s.batch * s.attended_heads.q.count * job.shape().head_width * s.query_tokens.all() * 4;
  const auto others = 2 * token * s.most_received_keys.all() * job.element_bytes();
  // its own, those that it attends to, those that arrive
  const auto shifted = mine + others + partial_sums;
  const bool gathers_prefix = job.shape().text == TextTokens::kPrefix;
  return gathers_prefix ? std::max(shifted, gathered) : shifted;
}

// What a sum over tensor parallel ranks needs besides its own tensor: a native one the result
// alone.
std::int64_t reducing_bytes(const PlanJob& job, const Degrees& grid, std::int64_t numel) {
  const bool is_native = job.layout.collectives == Collectives::kNative;
  if (job.is_on_host || is_native) return numel * job.element_bytes();
  return all_reduce_bytes(numel, job.element_bytes(), grid.tp);
}

std::int64_t staging_bytes(const PlanJob& job, const Degrees& grid, const StepShare& s) {
  const auto e = job.element_bytes();
  const auto stream = grid.tp > 1 ? s.batch * s.own_tokens.all() * job.shape().hidden : 0;
  const auto reduced = reducing_bytes(job, grid, stream);
  const auto received =
      (s.attended_heads.q.count + 2 * s.attended_heads.kv.count) * s.query_tokens.all();
  const auto numbers = s.heads_sent * s.own_tokens.all() + received;
  const auto traded = grid.ulysses > 1 ? s.batch * numbers * job.shape().head_width * e : 0;
  const auto handed_over = grid.pp > 1 ? s.batch * s.own_tokens.all() * job.shape().hidden * e : 0;
  return std::max(reduced, traded) + handed_over;
}

// Counts what one denoiser keeps. References have batch 1; a prefix is that of each branch's
// pictures.
std::int64_t reference_kv_bytes(const PlanJob& job, const StepShare& share, std::int64_t branches,
                                std::int64_t blocks) {
  const auto kept = share.key_tokens.all() - share.query_tokens.all();
  const auto sets = job.keeps_prefix() ? branches * job.batch_size : 1;
  return 2 * blocks * sets * share.attended_heads.kept_kv() * job.shape().head_width * kept *
         job.element_bytes();
}

// The step cache's, for each picture of each branch: what the first block added to the state, where
// a stage begins, and what its other blocks did.
std::int64_t step_cache_bytes(const PlanJob& job, const StepShare& share, std::int64_t branches,
                              const Stage& stage) {
  if (!job.caches_steps) return 0;
  const auto tensors = stage.first_block == 0 ? 2 : 1;
  return tensors * branches * share.batch * share.own_tokens.all() * job.shape().hidden *
         job.element_bytes();
}

// The rotary tables of a denoiser's input, in float32.
std::int64_t rope_bytes(const PlanJob& job) {
  auto counts = all_keys(job);
  if (job.pictures.reference_use == PicturesTaken::ReferenceUse::kOnce) counts.references = 0;
  const auto tokens = counts.text + counts.image + counts.references;
  return 2 * tokens * job.shape().head_width * std::int64_t(sizeof(float));
}

struct Kept {
  OffloadMode mode;
  Quantize quantize = Quantize::kNone;
  int resident = 0;
  enum class Slot { kShared, kOwn } slot = Slot::kShared;  // for a part that is offloaded whole
};

// Weights of the networks that embed references instead of the autoencoder; released afterwards.
std::int64_t picture_embedding_bytes(const PlanJob& job) {
  std::int64_t bytes = 0;
  if (job.pictures.tokens_behind_prompt == 0) return bytes;
  for (const auto* part : job.family->parts(Part::Role::kPicture))
    for (const auto& tensor : tensors_of(job).of(*part).tensors)
      bytes += numbers_of(tensor, 1) * job.element_bytes();
  return bytes;
}

// Adds a part's weights, placed according to job.memory, to the rank's bytes. Returns the part's
// own bytes on the device.
std::int64_t hold(const PlanJob& job, const PartPages& pages, const Kept& kept, RankBytes& bytes) {
  bytes.widened = std::max(bytes.widened, widened_bytes(job, pages, kept.quantize));
  bytes.largest_tensor = std::max(bytes.largest_tensor, pages.largest_tensor);
  if (pages.groups.empty()) return pages.outside;
  bytes.pages += pages.paged();
  for (const auto& page : pages.groups)
    bytes.largest_page = std::max(bytes.largest_page, page.bytes);
  if (kept.mode == OffloadMode::kModel && kept.slot == Kept::Slot::kShared) {
    bytes.shared_slot = std::max(bytes.shared_slot, pages.paged());
    return pages.outside;
  }
  auto offload = job.memory.offload;
  offload.resident = kept.resident;
  if (kept.mode == OffloadMode::kSequential) offload.prefetch = 0;
  const auto where = job.is_on_host ? SlotsOf::kHost : SlotsOf::kDevice;
  const SlotUse use(pages, offload);
  const auto slots = use.slot_bytes(where);
  bytes.resident_pages += use.resident_bytes();
  bytes.slots += slots;
  return pages.outside + slots;
}

// The text encoders share their slots.
PartPages text_pages(const PlanJob& job, const Shares& sharers, int rank) {
  const auto& o = job.memory.offload;
  PartPages all;
  for (const auto* part : job.family->text_parts())
    all.add(pages_of(job, *part, {.tp = sharers, .tp_rank = rank},
                     {.quantize = part->form(job.memory), .offload = o.text, .blocks = o.blocks}));
  return all;
}

void hold_text(const PlanJob& job, const Shares& sharers, int rank, RankBytes& bytes) {
  const auto mode = job.memory.offload.text;
  if (mode != OffloadMode::kModel) {
    bytes.text_encoders =
        hold(job, text_pages(job, sharers, rank), {mode, job.memory.quantize_text}, bytes);
    return;
  }
  for (const auto* part : job.family->text_parts()) {
    const auto quantize = part->form(job.memory);
    const auto pages = pages_of(job, *part, {.tp = sharers, .tp_rank = rank},
                                {.quantize = quantize, .offload = mode});
    bytes.text_encoders += hold(job, pages, {mode, quantize}, bytes);
  }
}

// ControlNets run in every step, each in a slot of its own, and their outputs live throughout it.
void add_controlnets(const PlanJob& job, const Degrees& grid, int rank, const StepShare& item,
                     RankBytes& bytes) {
  const auto& o = job.memory.offload;
  for (const auto* part : job.family->parts(Part::Role::kControl)) {
    const auto& tensors = tensors_of(job).of(*part);
    const auto pages =
        pages_of(job, *part, {.tp = grid.of_tp(), .tp_rank = place_of(grid, rank).tp},
                 {.quantize = job.memory.quantize, .offload = o.transformer, .blocks = o.blocks});
    bytes.transformer += hold(
        job, pages,
        {.mode = o.transformer, .quantize = job.memory.quantize, .slot = Kept::Slot::kOwn}, bytes);
    bytes.activations += tensors.num_blocks() * item.batch * item.own_tokens.image *
                         job.shape().hidden * job.element_bytes();
    const Stage whole{.first_block = 0, .num_blocks = tensors.num_blocks()};
    bytes.modulations += job.batch_size * job.num_levels() *
                         num_modulations(part->costs, tensors, whole) * job.element_bytes();
  }
}

void hold_denoisers(const PlanJob& job, const PartShare& share, RankBytes& bytes) {
  const auto& o = job.memory.offload;
  const Kept kept{o.transformer, job.memory.quantize, o.resident};
  if (o.transformer != OffloadMode::kModel) {
    bytes.transformer = hold(job, pages_of_denoisers(job, share).all, kept, bytes);
    return;
  }
  for (const auto* const part : job.family->denoisers()) {
    const auto pages =
        pages_of(job, *part, share, {.quantize = job.memory.quantize, .offload = o.transformer});
    bytes.transformer += hold(job, pages, kept, bytes);
  }
}

void add_transformer(const PlanJob& job, const Degrees& grid, int rank, const Stage& stage,
                     RankBytes& bytes) {
  const auto share = share_of_step(job, grid, rank);
  const auto e = job.element_bytes();
  for (const auto& served : served_steps(job)) {
    const auto& tensors = tensors_of(job).of(*served.part);
    const auto columns =
        num_modulations(job.shape().blocks, tensors, stage) + job.shape().shared_modulations;
    bytes.modulations += served.levels * share.batch * columns * e;
    const bool serves_all = served.part->serves.branches == Served::BranchSet::kAll;
    const auto branches = serves_all ? share.branches : 1;
    bytes.ropes += (serves_all ? job.branches : 1) * rope_bytes(job);  // on every rank
    if (job.shape().has_refined_text())  // whole, of the branches that this rank evaluates
      bytes.kept += branches * share.batch * job.padded_text_tokens() * job.shape().hidden * e;
    bytes.kept += reference_kv_bytes(job, share, branches, stage.num_blocks) +
                  step_cache_bytes(job, share, branches, stage);
  }
  // Items pass a pipeline one by one, and a step cache picture by picture. A rank of unequal shares
  // may have none.
  auto item = share;
  item.batch /= std::max<std::int64_t>(1, items_of_batch(job, grid));
  if (job.caches_steps) item.batch = std::min<std::int64_t>(item.batch, 1);
  hold_denoisers(job,
                 {.tp = grid.of_tp(),
                  .tp_rank = place_of(grid, rank).tp,
                  .begin = stage.first_block,
                  .count = stage.num_blocks},
                 bytes);
  bytes.activations = activation_bytes(job, grid, item, stage);
  add_controlnets(job, grid, rank, item, bytes);
  bytes.keys_values = keys_values_bytes(job, grid, item) + mask_bytes(job, item);
  bytes.staging = staging_bytes(job, grid, item);
}

// NCCL's and RCCL's buffers for each peer that a rank exchanges with, and their kernels. A group
// that they sum over has buffers of its own, unless it is of all ranks.
std::int64_t link_bytes(const PlanJob& job, const Degrees& grid) {
  constexpr std::int64_t kLibrary = 200'000'000, kPeer = 100'000'000, kMostPeers = 8;
  if (job.is_on_host || grid.product() == 1) return 0;
  const auto of_peers = [&](int ranks) {
    return kPeer * std::min<std::int64_t>(kMostPeers, ranks - 1);
  };
  const bool has_own_group =
      job.layout.collectives == Collectives::kNative && grid.tp < grid.product();
  return kLibrary + of_peers(grid.product()) + (has_own_group ? of_peers(grid.tp) : 0);
}

// What becomes a graph's own memory and stays its own: all that a step works in, of each denoiser.
// With a step cache branches are evaluated one by one, and may need a graph each (PartGraphs).
void add_recorded(const PlanJob& job, const Degrees& grid, RankBytes& bytes) {
  if (!job.records_steps()) return;
  const auto one = bytes.activations + bytes.keys_values + bytes.staging;
  const auto graphs = job.caches_steps ? job.branches / grid.cfg : 1;
  const auto all = graphs * std::int64_t(job.family->denoisers().size()) * one;
  bytes.other_steps = all - one;
  if (job.memory.recorded_step != RecordedStep::kDropped) bytes.recorded = all;
}

// Pages that stay in host memory: the others are in files, or on the device for good.
std::int64_t kept_bytes(const PlanJob& job, const RankBytes& b) {
  return job.memory.offload.folder.empty() ? b.pages - b.resident_pages : 0;
}

// Staging for pages on their way to a GPU: as much as their shared slots.
std::int64_t staged_bytes(const PlanJob& job, const RankBytes& b) {
  const auto& o = job.memory.offload;
  if (job.is_on_host || (o.folder.empty() && o.pin != Pin::kOnTheFly)) return 0;
  return b.slots - b.resident_pages + b.shared_slot;
}

std::int64_t locked_bytes(const PlanJob& job, const RankBytes& b) {
  const auto& o = job.memory.offload;
  if (job.is_on_host || o.pin == Pin::kNever) return 0;
  const bool is_direct = o.folder.empty() && o.pin == Pin::kAlways;
  return is_direct ? kept_bytes(job, b) : staged_bytes(job, b);
}

}  // namespace

Shares text_ranks(const PlanJob& job, const Degrees& grid) {
  return job.layout.text == TextRanks::kShared ? grid.of_tp() : Shares(1);
}

std::int64_t RankBytes::peak() const {
  const auto step =
      activations + keys_values + modulations + ropes + kept + staging + widened + other_steps;
  return weights() + link + std::max({recorded + encoding, step, recorded + decoding});
}

RankBytes bytes_of_others(const PlanJob& job, const Degrees& grid, int rank) {
  RankBytes bytes;
  const auto sharers = text_ranks(job, grid);
  if (rank < sharers.size()) {
    bytes.encoding = encoding_bytes(job, sharers.size());
    hold_text(job, sharers, rank, bytes);
  }
  if (rank == 0)
    bytes.encoding =
        std::max({bytes.encoding, picture_encoding_bytes(job), picture_embedding_bytes(job)});
  if (rank > 0 && job.layout.decode == DecodeRanks::kFirst) return bytes;
  const auto mode = job.memory.offload.vae;
  const auto& decoder = tensors_of(job).of(Part::Role::kDecoder);
  bytes.vae = hold(job, job.figures->pages(decoder, {}, {.offload = mode}), {mode}, bytes);
  // A picture without tiles is decoded by one rank.
  const bool decodes = is_tiled(job.tiling, job.size()) || rank < pictures_of_round_on(grid, job);
  if (decodes) bytes.decoding = decoding_bytes(job);
  return bytes;
}

RankBytes predict_bytes(const PlanJob& job, const Degrees& grid, int rank, const Stage& stage) {
  auto bytes = bytes_of_others(job, grid, rank);
  add_transformer(job, grid, rank, stage, bytes);
  add_recorded(job, grid, bytes);
  bytes.link = link_bytes(job, grid);
  bytes.locked = locked_bytes(job, bytes);
  return bytes;
}

RankBytes predict_transformer_bytes(const PlanJob& job, const Degrees& grid, int rank,
                                    const Stage& stage) {
  RankBytes bytes;
  add_transformer(job, grid, rank, stage, bytes);
  bytes.link = link_bytes(job, grid);
  bytes.locked = locked_bytes(job, bytes);
  return bytes;
}

std::int64_t host_peak(const PlanJob& job, const RankBytes& b) {
  const bool in_files = !job.memory.offload.folder.empty();
  const auto kept = kept_bytes(job, b);
  // All pages are built before the first one moves to where it stays. One more exists briefly: as
  // its tensors, or as a copy.
  const auto one_more = std::max(b.largest_tensor, in_files ? 0 : b.largest_page);
  const auto while_loading = (in_files ? b.largest_page : b.pages) + one_more;
  const auto outside = b.weights() - b.slots - b.shared_slot;
  const auto stays = std::min(kRankBytes, b.activations);
  if (job.is_on_host) return stays + std::max(kept + b.peak(), outside + while_loading);
  return std::max(kept + staged_bytes(job, b), while_loading + 2 * Upload::kHalf);
}

std::int64_t needed_bytes(const PlanJob& job, const RankBytes& b) {
  return job.is_on_host ? process_bytes(job) + host_peak(job, b) : b.peak();
}

}  // namespace braid
