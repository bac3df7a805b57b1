#include "pipeline/generate.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "comm/fate.h"
#include "pipeline/sampling/denoise.h"
#include "pipeline/sampling/step_pace.h"

namespace braid {
namespace {

// Pictures larger than this are decoded in tiles unless told otherwise: the untiled decoder needs
// about 2.5 GB for each million pixels in float32.
constexpr std::int64_t kAutoTilingPixels = 2048 * 2048;

struct Batch {
  int first, count;  // pictures; none: a rank that only keeps the others company
};

// One call of generate_pictures: what its steps share.
class Run {
 public:
  Run(const FluxFamily& family, const Settings& settings, const Hooks& hooks,
      const Observers& observers)
      : family_(family), settings_(settings), hooks_(hooks), observers_(observers) {}

  void embed_prompts();
  void start_from(const Latents& latents);
  std::vector<Picture> draw(Batch round);
  const TrafficByAxis& step_traffic() const { return step_traffic_; }

 private:
  void report(const Progress& progress) const;
  void begin(Phase phase) const;
  Batch my_share(Batch round) const;
  DenoiseResult denoise_mine(const DenoiseJob& job, const Schedule& schedule, Batch round);
  void check_agreement(const DenoiseJob& job, const Schedule& schedule) const;
  void record(const std::string& name, const Tensor& batch);
  DenoiseJob prepare(Batch batch);
  Tensor text_of_batch(Batch batch, Tensor Conditioning::*part) const;
  Picture picture_of(const Tensor& decoded, int number) const;
  std::vector<Picture> decode(Batch batch, const Tensor& latents_BNC) const;

  const FluxFamily& family_;
  const Settings& settings_;
  const Hooks& hooks_;
  Observers observers_;
  std::vector<Conditioning> prompts_;
  std::optional<Conditioning> negative_;
  TrafficByAxis step_traffic_;
  Tensor given_latents_;  // packed, of all pictures; undefined: they are drawn
};

// The first rank hears the caller, and all ranks stop at the same place.
void Run::report(const Progress& progress) const {
  family_.mesh().world.await();  // a step takes longer where there are more pictures
  const auto wish = at::full({1}, hooks_.stop.stop_requested(), at::kBool);
  if (family_.mesh().world.broadcast(wish, 0).item<bool>()) throw AgreedStop("stopped as asked");
  begin(progress.phase);
  if (hooks_.progress) hooks_.progress(progress);
}

// Ranks agree on something in every phase, so that none is a phase behind another.
void Run::begin(Phase phase) const {
  if (observers_.peaks) observers_.peaks->enter(phase);
}

// The pictures of a round that this data-parallel rank draws.
Batch Run::my_share(Batch round) const {
  const auto share = share_of(round.count, family_.mesh().dp.rank(), family_.mesh().dp.size());
  return {.first = round.first + int(share.begin), .count = int(share.count)};
}

// Before the first step: the ranks that work on the same pictures start from the same numbers.
void Run::check_agreement(const DenoiseJob& job, const Schedule& schedule) const {
  const auto& replica = family_.mesh().replica;
  check_same(replica, at::tensor(schedule.sigmas), "noise levels");
  check_same(replica, at::tensor(schedule.timesteps), "timesteps");
  check_same(replica, job.latents_BNC, "initial latents");
  check_same(replica, job.text_BTC, "embedded prompts");
}

void Run::record(const std::string& name, const Tensor& batch) {
  if (!observers_.recording) return;
  const auto copy = batch.to(at::TensorOptions(at::kFloat).device(at::kCPU)).contiguous();
  auto& all = (*observers_.recording)[name];
  all = all.defined() ? at::cat({all, copy}) : copy;
}

void Run::embed_prompts() {
  const auto count = std::int64_t(settings_.prompts.size()) + (settings_.negative ? 1 : 0);
  std::int64_t done = 0;
  const auto embed = [&](const PromptPair& prompt) {
    auto embedded = family_.encode(prompt, settings_.max_sequence_length, hooks_.warning);
    report({.phase = Phase::kText, .done = ++done, .total = count});
    return embedded;
  };
  report({.phase = Phase::kText, .done = 0, .total = count});
  for (const auto& prompt : settings_.prompts) prompts_.push_back(embed(prompt));
  if (settings_.negative) negative_ = embed(*settings_.negative);
}

void Run::start_from(const Latents& latents) {
  const auto& shape = settings_.latent_shape;
  const std::vector<std::int64_t> packed = {settings_.num_pictures(), shape.num_tokens(),
                                            4 * shape.channels};
  const std::vector<std::int64_t> unpacked = {settings_.num_pictures(), shape.channels,
                                              shape.height, shape.width};
  require(latents.shape == packed || latents.shape == unpacked, "the initial latents should have ",
          "the shape ", at::IntArrayRef(packed), " or ", at::IntArrayRef(unpacked), ", they have ",
          at::IntArrayRef(latents.shape));
  const auto count = std::int64_t(latents.values.size());
  const auto given = at::tensor(latents.values, at::kFloat);
  require(count == c10::multiply_integers(latents.shape), "the initial latents should have ",
          c10::multiply_integers(latents.shape), " values, they have ", count);
  const auto shaped = given.view(latents.shape).to(family_.dtype());
  given_latents_ = latents.shape == packed ? shaped : pack(shaped);
}

Tensor Run::text_of_batch(Batch batch, Tensor Conditioning::*part) const {
  std::vector<Tensor> parts = {(prompts_.front().*part).narrow(0, 0, 0)};
  for (int i = batch.first; i < batch.first + batch.count; ++i)
    parts.push_back(prompts_[std::size_t(i / settings_.num_images)].*part);
  return at::cat(parts);
}

DenoiseJob Run::prepare(Batch batch) {
  DenoiseJob job{.latents_BNC = {},
                 .image_ids_NA = position_ids(settings_.latent_shape, family_.device()),
                 .text_BTC = text_of_batch(batch, &Conditioning::text_1TC),
                 .pooled_BC = text_of_batch(batch, &Conditioning::pooled_1C),
                 .negative_text_BTC = {},
                 .negative_pooled_BC = {},
                 .true_cfg = settings_.true_cfg,
                 .guidance_rescale = settings_.guidance_rescale,
                 .cfg_norm_cap = settings_.cfg_norm_cap};
  if (negative_) {
    job.negative_text_BTC = negative_->text_1TC.expand_as(job.text_BTC);
    job.negative_pooled_BC = negative_->pooled_1C.expand_as(job.pooled_BC);
  }
  if (family_.limits().guidance_embeds) job.guidance = settings_.guidance;
  for (int i = batch.first; i < batch.first + batch.count; ++i)
    job.generators.push_back(generator_of(settings_.seed + std::uint64_t(i)));
  const auto latents =
      given_latents_.defined()
          ? given_latents_.narrow(0, batch.first, batch.count)
          : pack(draw_noise(job.generators, settings_.latent_shape, family_.dtype()));
  job.latents_BNC = latents.to(family_.device());
  return job;
}

// Of decoded values [1 3 H W], -1 .. 1: to 0 .. 1 in the model's dtype, then in float32 to bytes.
Picture Run::picture_of(const Tensor& decoded, int number) const {
  const auto unit = (decoded * 0.5 + 0.5).clamp(0, 1);
  const auto bytes = (unit.squeeze(0).permute({1, 2, 0}).to(at::kCPU, at::kFloat) * 255)
                         .round()
                         .to(at::kByte)
                         .contiguous();
  const auto* const data = bytes.const_data_ptr<std::uint8_t>();
  return {.width = int(bytes.size(1)),
          .height = int(bytes.size(0)),
          .rgb = {data, data + bytes.numel()},
          .prompt = settings_.prompt_of(number).clip,
          .seed = settings_.seed + std::uint64_t(number)};
}

std::vector<Picture> Run::decode(Batch batch, const Tensor& latents_BNC) const {
  begin(Phase::kDecode);
  Progress progress{.phase = Phase::kDecode,
                    .done = 0,
                    .total = batch.count,
                    .first_picture = batch.first,
                    .num_pictures = batch.count};
  const auto tell = [&] {
    if (hooks_.progress) hooks_.progress(progress);
  };
  tell();
  const bool large = std::int64_t(settings_.width) * settings_.height > kAutoTilingPixels;
  const bool tiled =
      settings_.vae_tiling == VaeTiling::kOn || (settings_.vae_tiling == VaeTiling::kAuto && large);
  std::vector<Picture> pictures;
  const auto on_picture = [&](const Tensor& decoded) {
    pictures.push_back(picture_of(decoded, batch.first + int(pictures.size())));
    if (hooks_.picture) hooks_.picture(pictures.back());
    ++progress.done;
    tell();
  };
  family_.decode(latents_BNC, settings_.latent_shape, tiled ? Tiles::kWhereLarger : Tiles::kNever,
                 on_picture);
  return pictures;
}

DenoiseResult Run::denoise_mine(const DenoiseJob& job, const Schedule& schedule, Batch round) {
  Progress progress{.phase = Phase::kDenoise,
                    .done = 0,
                    .total = settings_.steps,
                    .first_picture = round.first,
                    .num_pictures = round.count};
  report(progress);
  const auto before = traffic_of(family_.mesh());
  StepPace pace(family_.device());
  const auto on_step = [&](int done) {
    pace.step_is_given();
    progress.done = done;
    report(progress);
    if (step_traffic_.empty()) step_traffic_ = traffic_between(before, traffic_of(family_.mesh()));
  };
  if (job.latents_BNC.size(0) > 0)
    return denoise(family_.predict(), family_.schedule_config(), schedule, job, on_step);
  for (int step = 1; step <= settings_.steps; ++step) on_step(step);
  return {.latents_BNC = job.latents_BNC, .first_velocity_BNC = job.latents_BNC};
}

std::vector<Picture> Run::draw(Batch round) {
  const auto schedule = make_schedule(family_.schedule_config(), settings_.steps,
                                      settings_.latent_shape.num_tokens());
  const auto job = prepare(my_share(round));
  check_agreement(job, schedule);
  const auto mine = denoise_mine(job, schedule, round);
  const auto of_round = [&](const Tensor& x) { return family_.mesh().dp.all_gather(x, 0); };
  const auto latents = of_round(mine.latents_BNC);
  record("prompt_embeds", of_round(job.text_BTC));
  record("pooled_prompt_embeds", of_round(job.pooled_BC));
  record("latents_initial", of_round(job.latents_BNC));
  record("velocity_first", of_round(mine.first_velocity_BNC));
  record("latents_final", latents);
  if (round.first == 0) {
    record("sigmas", at::tensor(schedule.sigmas));
    record("timesteps", at::tensor(schedule.timesteps));
  }
  auto pictures = decode(round, latents);
  family_.mesh().world.await();
  return pictures;
}

}  // namespace

Drawn generate_pictures(const FluxFamily& family, const Settings& settings,
                        const std::optional<Latents>& latents, const Hooks& hooks,
                        const Observers& observers) {
  Run run(family, settings, hooks, observers);
  if (latents) run.start_from(*latents);
  run.embed_prompts();
  Drawn drawn;
  const int round = pictures_per_round(settings, family.mesh().degrees);
  for (int first = 0; first < settings.num_pictures(); first += round) {
    const auto count = std::min(round, settings.num_pictures() - first);
    for (auto& picture : run.draw({.first = first, .count = count}))
      drawn.pictures.push_back(std::move(picture));
  }
  drawn.step = run.step_traffic();
  const auto& failure = family.graph_use().failure;
  if (!failure.empty() && hooks.warning) hooks.warning(failure);
  return drawn;
}

}  // namespace braid
