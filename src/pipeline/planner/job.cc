#include "pipeline/planner/job.h"

#include <algorithm>

#include "pipeline/graphs/step_graph.h"
#include "pipeline/request/check_pictures.h"
#include "pipeline/request/settings.h"

namespace braid {
namespace {

// Tokens of the shares [first, last) of `total`.
std::int64_t tokens_of(std::int64_t total, int first, int last, const Shares& ranks) {
  return (last == ranks.size() ? total : share_of(total, last, ranks).begin) -
         share_of(total, first, ranks).begin;
}

// The shares [first, last) of a whole picture's tokens.
TokenCounts tokens_of(const PlanJob& job, int first, int last, const Shares& ranks) {
  const auto all = all_keys(job);
  TokenCounts counts{.image = tokens_of(all.image, first, last, ranks),
                     .text = tokens_of(all.text, first, last, ranks),
                     .crossed = all.crossed};
  for (const auto run : job.pictures.references)
    counts.references += tokens_of(run, first, last, ranks);
  return counts;
}

struct SentHeads {
  std::int64_t all = 0, kv = 0;  // of q, k and v; of k and v
};

SentHeads heads_sent(std::int64_t heads, std::int64_t kv_heads, const Shares& traders) {
  SentHeads sent;
  for (int r = 0; r < traders.size(); ++r) {
    const auto traded = traded_heads(heads, kv_heads, r, traders);
    sent.all += traded.q.count + 2 * traded.kv.count;
    sent.kv += 2 * traded.kv.count;
  }
  return sent;
}

std::int64_t grouped_keys(const DenoiserShape& shape, int rank, const Shares& ranks) {
  return std::int64_t(key_heads_of(shape.num_heads, shape.num_kv_heads, rank, ranks).size());
}

}  // namespace

std::int64_t TokenCounts::of(const BlockCost& kind) const {
  switch (kind.scope) {
    case TokenScope::kImage:
      return image + references;
    case TokenScope::kText:
      return text;
    case TokenScope::kNoise:
      return image;
    case TokenScope::kReferences:
      return references;
    case TokenScope::kAll:
      break;
  }
  return all();
}

bool PlanJob::records_steps() const { return why_not_recorded(graphs, memory, is_on_host).empty(); }

PlanJob job_of_family(std::shared_ptr<const Family> family) {
  const auto& limits = family->description().limits;
  const auto& defaults = limits.defaults;
  PlanJob job{.family = std::move(family)};
  job.width = defaults.width;
  job.height = defaults.height;
  job.frames = defaults.frames;
  const auto sampling = settle_sampling({}, defaults.sampling, {}, defaults.steps, limits.sampling,
                                        [](const std::string&) {});
  job.steps = sampling.num_steps;
  job.sampler = *sampling.sampling.sampler;
  job.text_tokens = limits.usual_text_tokens();
  job.branches = num_branches({}, limits);
  return job;
}

PlanJob surveyed(PlanJob job, const ModelFiles* files) {
  if (job.tensors) return job;
  job.tensors =
      std::make_shared<const ModelTensors>(survey_model(*job.family,
                                                        {.dtype = job.dtype,
                                                         .modulation = job.layout.modulation,
                                                         .keep_dense = job.memory.keep_dense,
                                                         .stored_codes = StoredCodes::kKept,
                                                         .adapters = job.adapters},
                                                        files));
  job.figures = std::make_shared<PartFigures>();
  return job;
}

PlanJob with_request(PlanJob job, const Request& r) {
  const auto& limits = job.family->description().limits;
  const auto size = drawn_size(r, limits);
  job.width = size.width;
  job.height = size.height;
  job.frames = size.frames;
  job.tiling = r.vae_tiling;
  job.pictures = planned_pictures(*job.family, r.pictures, job.size());
  const auto sampling = settle_sampling(r.sampling, limits.defaults.sampling, r.steps,
                                        limits.defaults.steps_without_list(), limits.sampling,
                                        [](const std::string&) {});
  const auto strength = strength_of(r.pictures, limits.pictures);
  const int num_steps = std::max(1, sampling.num_steps);
  job.skipped_steps = strength ? first_step_of(num_steps, *strength) : 0;
  job.steps = num_steps - job.skipped_steps;
  job.sampler = *sampling.sampling.sampler;
  job.text_tokens = r.max_sequence_length.value_or(job.text_tokens);
  job.num_pictures = std::max(1, int(r.prompts.size()) * r.num_images);
  job.batch_size = std::max(1, r.batch_size);
  job.branches = num_branches(r, limits);
  return job;
}

TokenCounts all_keys(const PlanJob& job) {
  const bool is_crossed = job.shape().text == TextTokens::kCross;
  const auto text = job.padded_text_tokens();
  return {.image = job.image_tokens(),
          .text = is_crossed ? 0 : text,
          .references = job.pictures.reference_tokens(),
          .crossed = is_crossed ? text : 0};
}

std::int64_t pictures_of_round(const PlanJob& job, const Degrees& g) {
  return std::min<std::int64_t>(job.num_pictures, pictures_per_round(job.batch_size, g));
}

std::int64_t pictures_of_round_on(const Degrees& grid, const PlanJob& job) {
  if (job.unequal_round) return *job.unequal_round;
  return std::min(job.num_pictures, job.batch_size * grid.dp);
}

PlanJob job_on_grid(PlanJob job, const Degrees& grid) {
  const auto round = pictures_of_round(job, grid);
  const auto sharers = grid.of_dp();
  job.batch_size = int(share_of(round, sharers.largest_rank(), sharers).count);
  if (!sharers.are_alike()) job.unequal_round = int(round);
  return job;
}

PlanJob job_of_rank(PlanJob job, const Degrees& grid, int rank) {
  if (job.unequal_round)
    job.batch_size = int(share_of(*job.unequal_round, place_of(grid, rank).dp, grid.of_dp()).count);
  return job;
}

StepShare share_of_step(const PlanJob& job, const Degrees& grid, int rank_of_grid) {
  const auto p = place_of(grid, rank_of_grid);
  const auto ranks = grid.of_context(), traders = grid.of_ulysses(), sharers = grid.of_tp();
  const int rank = p.ring * grid.ulysses + p.ulysses;
  const auto all = all_keys(job);
  // Tokens of the ranks that trade heads, at place `ring` of the ring.
  const auto keys_at = [&](int ring) {
    return tokens_of(job, ring * grid.ulysses, (ring + 1) * grid.ulysses, ranks);
  };
  const bool keeps_prefix = job.keeps_prefix();
  const bool keeps_references =
      keeps_prefix || job.pictures.reference_use == PicturesTaken::ReferenceUse::kOnce;
  const auto computed = [&](TokenCounts counts) {
    if (keeps_references) counts.references = 0;
    if (keeps_prefix) counts.text = 0;
    return counts;
  };
  const auto heads = share_of(job.shape().num_heads, p.tp, sharers).count;
  const bool are_grouped = job.shape().num_kv_heads < job.shape().num_heads;
  const auto kv_heads = are_grouped ? grouped_keys(job.shape(), p.tp, sharers) : heads;
  const auto sent = heads_sent(heads, kv_heads, traders);
  // A rank passes on, in R - 1 hops, all keys except those of the rank it sends to.
  const auto next = keys_at((p.ring + 1) % grid.ring);
  const auto mine = tokens_of(job, rank, rank + 1, ranks);
  auto most_keys = keys_at(0);
  for (int ring = 1; ring < grid.ring; ++ring)
    if (keys_at(ring).all() > most_keys.all()) most_keys = keys_at(ring);
  return {.branches = job.branches / grid.cfg,
          .batch = job.batch_size,
          .own_tokens = computed(mine),
          .heads = heads,
          .kv_heads = kv_heads,
          .attended_heads = traded_heads(heads, kv_heads, p.ulysses, traders),
          .heads_sent = sent.all,
          .kv_heads_sent = sent.kv,
          .query_tokens = computed(keys_at(p.ring)),
          .key_tokens = keys_at(p.ring),
          .sent_keys = {.image = all.image - next.image,
                        .text = all.text - next.text,
                        .references = all.references - next.references},
          .most_received_keys = most_keys,
          .tokens_before_steps = {.image = 0,
                                  .text = keeps_prefix ? mine.text : 0,
                                  .references = keeps_prefix ? mine.references : 0}};
}

}  // namespace braid
