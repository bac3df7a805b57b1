#include "pipeline/planner/job.h"

namespace braid {
namespace {

// Tokens of the shares [first, last) of `total`.
std::int64_t tokens_of(std::int64_t total, int first, int last, int ranks) {
  return (last == ranks ? total : share_of(total, last, ranks).begin) -
         share_of(total, first, ranks).begin;
}

}  // namespace

std::int64_t PlanJob::image_tokens() const {
  const auto patch = 2 * model.vae.downscale();
  return (width / patch) * (height / patch);
}

std::int64_t PlanJob::element_bytes() const { return std::int64_t(c10::elementSize(dtype)); }

std::optional<PlanJob> named_job(const std::string& name) {
  PlanJob job;  // the configs' defaults are FLUX.1's
  job.model.flux.guidance_embeds = name == "flux1-dev";
  if (name == "flux1-dev") return job;
  if (name != "flux1-schnell") return {};
  job.text_tokens = 256;
  job.steps = 4;
  return job;
}

PlanJob surveyed(PlanJob job, const ModelFiles* files) {
  if (job.tensors) return job;
  job.tensors = std::make_shared<const ModelTensors>(survey_model(
      job.model,
      {.dtype = job.dtype, .modulation = job.modulation, .keep_dense = job.memory.keep_dense},
      files));
  return job;
}

PlanJob job_of_model(const PipelineOptions& options, at::Device device) {
  const auto files = find_model(options);
  const auto checkpoint = files.open_transformer();
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  PlanJob job{.model = {.flux = read_transformer_config(files, checkpoint),
                        .t5 = read_t5_config(config("text_encoder_2")),
                        .clip = read_clip_config(config("text_encoder")),
                        .vae = read_vae_config(config("vae"))},
              .dtype = choose_dtype(options.dtype, checkpoint.dtype(), device)};
  job.memory = options.memory;
  const auto defaults = read_defaults(files, job.model.flux.guidance_embeds);
  job.width = defaults.width;
  job.height = defaults.height;
  job.steps = defaults.steps;
  job.text_tokens = defaults.max_sequence_length;
  return job;
}

PlanJob job_of_request(const PipelineOptions& options, const Request& r, at::Device device) {
  auto job = job_of_model(options, device);
  job.is_on_host = device.is_cpu();
  job.tiling = r.vae_tiling;
  const auto patch = int(2 * job.model.vae.downscale());
  job.width = std::max(1, r.width.value_or(job.width) / patch) * patch;
  job.height = std::max(1, r.height.value_or(job.height) / patch) * patch;
  job.steps = std::max(1, r.steps.value_or(job.steps));
  job.text_tokens = r.max_sequence_length.value_or(job.text_tokens);
  job.num_pictures = std::max(1, int(r.prompts.size()) * r.num_images);
  job.batch_size = std::max(1, r.batch_size);
  job.branches = r.negative_prompt && r.true_cfg > 1 ? 2 : 1;
  const auto& layout = options.layout;
  job.modulation = layout.shard_modulation ? SharedModulation::kYes : SharedModulation::kNo;
  job.text = layout.shard_text ? SharedText::kYes : SharedText::kNo;
  job.decode = layout.share_decode ? SharedDecode::kYes : SharedDecode::kNo;
  job.ring_form = layout.gather_keys ? RingForm::kGather : RingForm::kShift;
  const auto files = find_model(options);
  return surveyed(std::move(job), &files);
}

StepShare share_of_step(const PlanJob& job, int tp, int branches_at_once, ContextPlace p) {
  const int ranks = p.ring_size * p.ulysses_size;
  const int rank = p.ring * p.ulysses_size + p.ulysses;
  const auto image = job.image_tokens(), text = std::int64_t(job.text_tokens);
  // Tokens of the ranks that trade heads, at place `ring` of the ring.
  const auto group_tokens = [&](int ring) {
    const int first = ring * p.ulysses_size, last = first + p.ulysses_size;
    return tokens_of(image, first, last, ranks) + tokens_of(text, first, last, ranks);
  };
  const auto heads = job.model.flux.num_heads / tp;
  // In R - 1 hops a rank sends on everybody's keys but those of the rank it sends to.
  const int next = (p.ring + 1) % p.ring_size;
  return {.branches = job.branches / branches_at_once,
          .batch = job.batch_size,
          .image_tokens = share_of(image, rank, ranks).count,
          .text_tokens = share_of(text, rank, ranks).count,
          .heads = heads,
          .attended_heads = share_of(heads, p.ulysses, p.ulysses_size).count,
          .group_tokens = group_tokens(p.ring),
          .passed_tokens = image + text - group_tokens(next)};
}

}  // namespace braid
