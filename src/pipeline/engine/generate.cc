#include "pipeline/engine/generate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/free_memory.h"
#include "parallel/layout.h"
#include "pipeline/engine/denoise.h"
#include "pipeline/engine/previews.h"
#include "pipeline/engine/start.h"
#include "pipeline/loaded/once_per_picture.h"
#include "pipeline/pictures/finished.h"
#include "pipeline/request/latents.h"
#include "pipeline/sampling/noise.h"
#include "pipeline/sampling/solver.h"
#include "pipeline/sampling/step_pace.h"

namespace braid {
namespace {

struct Batch {
  int first, count;  // pictures; 0: this rank only takes part in the collectives
};

// One call of generate_pictures: what its steps share.
class Run {
 public:
  Run(const Model& model, const Settings& settings, const Hooks& hooks, const Observers& observers)
      : model_(model), settings_(settings), hooks_(hooks), observers_(observers) {}

  void embed_prompts(const PreparedPictures& pictures, int first_picture);
  void start_from(const BroughtAlong& brought);
  std::vector<Picture> draw(Batch round);
  Batch round_from(int first) const;
  RunFacts facts() &&;

 private:
  void report(const Progress& progress);
  void begin(Phase phase);
  std::size_t prompt_of(int picture) const { return std::size_t(picture / settings_.num_images); }
  int most_in_round(int first) const;
  Batch my_share(Batch round) const;
  DenoiseResult denoise_mine(DenoiseJob job, const Schedule& schedule, Batch round);
  DenoiseResult take_steps(DenoiseJob job, const Schedule& schedule, Batch round);
  void record(const std::string& name, const Tensor& batch);
  DenoiseJob prepare(Batch batch, const Condition& condition, float first_sigma) const;
  Condition condition_of(Batch batch, Batch round) const;
  Picture finished_picture(const Tensor& whole_1CHW, int number, int frame) const;
  std::vector<Picture> decode(Batch batch, const Tensor& latents_BNC);
  void end_step(int step, float timestep, Batch round, Tensor& mine_BNC) const;
  std::vector<Picture> undecoded(Batch batch, const Tensor& latents_BNC) const;
  void hand_over(Picture& picture, int number) const;

  const Model& model_;
  const Settings& settings_;
  const Hooks& hooks_;
  Observers observers_;
  // Those of the round that is drawn; the others are empty.
  std::vector<Condition> prompts_ = std::vector<Condition>(settings_.prompts.size());
  const std::shared_ptr<std::any> seen_ = std::make_shared<std::any>();  // of the references
  EmbeddedPictures looked_at_{.embedded = {}, .scales = settings_.reference_scales};
  std::optional<Condition> negative_;
  RunFacts facts_;
  std::optional<Start> start_;
  std::optional<PutBack> put_back_;
};

void Run::report(const Progress& progress) {
  model_.mesh().world.poll();
  model_.mesh().world.await();  // a step takes longer with more pictures
  begin(progress.phase);
  if (hooks_.progress) hooks_.progress(progress);
  model_.mesh().world.await();  // a callback takes as long as it likes
}

// Ranks agree on something in every phase, so none falls a phase behind.
void Run::begin(Phase phase) {
  facts_.phases.enter(phase);
  if (observers_.peaks) observers_.peaks->enter(phase);
}

// The pictures of a round that this data-parallel rank draws.
Batch Run::my_share(Batch round) const {
  const auto share = pictures_of_rank(model_.mesh(), round.count);
  return {.first = round.first + int(share.begin), .count = int(share.count)};
}

// Prompts of unequal length are recorded with the shorter ones zero-padded.
void Run::record(const std::string& name, const Tensor& batch) {
  const bool is_recorded = observers_.run.record == RecordTensors::kYes;
  if (!is_recorded || model_.mesh().world.rank() > 0) return;
  auto copy = batch.to(at::TensorOptions(at::kFloat).device(at::kCPU)).contiguous();
  auto& all = facts_.recording[name];
  if (all.defined() && all.dim() == 3) {
    const auto longest = std::max(all.size(1), copy.size(1));
    all = at::constant_pad_nd(all, {0, 0, 0, longest - all.size(1)});
    copy = at::constant_pad_nd(copy, {0, 0, 0, longest - copy.size(1)});
  }
  all = all.defined() ? at::cat({all, copy}) : copy;
}

// Embeds what the round from this picture on lacks, and drops what earlier ones needed: a request
// may have thousands of prompts, and encoders in pages are copied for each anyway. References are
// appended to the prompt, not to the negative prompt.
void Run::embed_prompts(const PreparedPictures& pictures, int first_picture) {
  const auto first = prompt_of(first_picture),
             last = prompt_of(first_picture + most_in_round(first_picture) - 1);
  std::fill_n(prompts_.begin(), first, Condition());
  if (prompts_[last].text_BTC.defined()) return;
  auto begin = first;
  while (prompts_[begin].text_BTC.defined()) ++begin;
  const KeepFreedMemory keep;
  const bool is_first = begin == 0;
  const auto count = std::int64_t(last + 1 - begin) + (is_first && settings_.negative ? 1 : 0);
  std::int64_t done = 0;
  const auto embed = [&](Prompt prompt) {
    prompt.pictures_13HW = pictures.references_13HW;
    prompt.seen = seen_;
    auto embedded = model_.encoders().encode(prompt, settings_.max_sequence_length, hooks_.warning);
    report({.phase = Phase::kText, .done = ++done, .total = count});
    return embedded;
  };
  report({.phase = Phase::kText, .done = 0, .total = count});
  for (auto i = begin; i <= last; ++i) prompts_[i] = embed(settings_.prompts[i]);
  if (!looked_at_.scales.empty()) {
    if (is_first) looked_at_.embedded = model_.encoders().embed_pictures(pictures.references_13HW);
    for (auto i = begin; i <= last; ++i)
      prompts_[i] = model_.family().behind_prompt(prompts_[i], settings_.prompts[i], looked_at_);
  }
  if (is_first && settings_.negative) negative_ = embed(*settings_.negative);
}

void Run::start_from(const BroughtAlong& brought) {
  start_.emplace(model_, settings_, brought.latents, brought.pictures);
  put_back_ = brought.pictures.put_back;
}

int Run::most_in_round(int first) const {
  return std::min(pictures_per_round(settings_, model_.mesh().degrees),
                  settings_.num_pictures() - first);
}

// Takes as many pictures as fit, with prompts of equal token count.
Batch Run::round_from(int first) const {
  const auto tokens = [&](int picture) { return prompts_[prompt_of(picture)].text_BTC.size(1); };
  const int most = most_in_round(first);
  int count = 1;
  while (count < most && tokens(first + count) == tokens(first)) ++count;
  return {.first = first, .count = count};
}

// Each picture's own prompt, for the pictures of a round, one after another.
Condition Run::condition_of(Batch batch, Batch round) const {
  const auto of_picture = [&](int i) { return prompts_[prompt_of(i)]; };
  const auto joined = [&](Tensor Condition::*part) -> Tensor {
    const auto first = of_picture(round.first).*part;
    if (!first.defined()) return {};
    std::vector<Tensor> parts = {first.narrow(0, 0, 0)};
    for (int i = batch.first; i < batch.first + batch.count; ++i)
      parts.push_back(of_picture(i).*part);
    return at::cat(parts);
  };
  return {.text_BTC = joined(&Condition::text_BTC),
          .pooled_BC = joined(&Condition::pooled_BC),
          .places_R = of_picture(round.first).places_R};
}

// The same condition for every picture of a batch.
Condition expanded(const Condition& one, std::int64_t batch) {
  const auto times = [&](const Tensor& x) {
    auto sizes = x.sizes().vec();
    sizes.front() = batch;
    return x.expand(sizes);
  };
  return {.text_BTC = times(one.text_BTC),
          .pooled_BC = one.pooled_BC.defined() ? times(one.pooled_BC) : Tensor(),
          .places_R = one.places_R};
}

DenoiseJob Run::prepare(Batch batch, const Condition& of_prompts, float first_sigma) const {
  const auto& family = model_.family();
  const auto size = settings_.size();
  const auto like = at::TensorOptions(model_.dtype()).device(model_.device());
  const auto begin = [&](const Condition& condition) {
    return family.begin(condition, size, settings_.guidance, like);
  };
  DenoiseJob job{.latents_BNC = {},
                 .branches = {begin(of_prompts)},
                 .set_step = std::bind_front(&Family::set_step, &family),
                 .guidance = settings_.true_guidance,
                 .unguided = model_.mesh().cfg.size() > 1 ? DenoiseJob::Unguided::kAllBranches
                                                          : DenoiseJob::Unguided::kOneBranch,
                 .sampler = *settings_.sampling.sampler};
  if (negative_) job.branches.push_back(begin(expanded(*negative_, batch.count)));
  for (int i = batch.first; i < batch.first + batch.count; ++i)
    job.generators.push_back(generator_of(settings_.seed + std::uint64_t(i)));
  job.draw_for_step = std::bind_front(&Family::draw_for_step, &family, job.generators, size);
  start_->begin(job, batch.first, first_sigma);
  return job;
}

Picture Run::finished_picture(const Tensor& whole_1CHW, int number, int frame) const {
  if (const auto sentence = why_not_finite(whole_1CHW, number); sentence && hooks_.warning)
    hooks_.warning(*sentence);
  auto decoded_1CHW = whole_1CHW;
  if (const auto& part = settings_.returned)
    decoded_1CHW = whole_1CHW.narrow(2, part->top, part->height).narrow(3, part->left, part->width);
  auto bytes = bytes_of_decoded(decoded_1CHW);
  const auto& frames = model_.family().description().limits.frames;
  Picture picture{.width = bytes.width,
                  .height = bytes.height,
                  .rgb = std::move(bytes.rgb),
                  .prompt = settings_.prompt_of(number).text,
                  .seed = settings_.seed + std::uint64_t(number),
                  .alpha = std::move(bytes.alpha),
                  .frame = frame,
                  .num_frames = settings_.returned_frames(),
                  .frames_per_second = settings_.frames > 1 ? frames.per_second : 0};
  if (put_back_) picture = (*put_back_)(std::move(picture));
  if (settings_.output == Output::kValues)
    picture.values = latents_of(put_back_ ? unit_values(picture) : unit_values(decoded_1CHW));
  return picture;
}

// Latents instead of pictures: one for each picture or clip.
std::vector<Picture> Run::undecoded(Batch batch, const Tensor& latents_BNC) const {
  std::vector<Picture> pictures;
  for (int i = 0; i < batch.count; ++i) {
    const int number = batch.first + i;
    pictures.push_back({.width = settings_.width,
                        .height = settings_.height,
                        .rgb = {},
                        .prompt = settings_.prompt_of(number).text,
                        .seed = settings_.seed + std::uint64_t(number),
                        .values = latents_of(latents_BNC[i])});
    hand_over(pictures.back(), number);
  }
  return pictures;
}

void Run::hand_over(Picture& picture, int number) const {
  if (number + 1 == settings_.num_pictures() && picture.frame + 1 == picture.num_frames)
    observers_.before_last_picture();
  if (hooks_.picture) hooks_.picture(picture);
}

std::vector<Picture> Run::decode(Batch batch, const Tensor& latents_BNC) {
  begin(Phase::kDecode);
  Progress progress{.phase = Phase::kDecode,
                    .done = 0,
                    .total = std::int64_t(batch.count) * settings_.returned_frames(),
                    .first_picture = batch.first,
                    .num_pictures = batch.count};
  const auto tell = [&] {
    if (hooks_.progress) hooks_.progress(progress);
  };
  tell();
  std::vector<Picture> pictures;
  const auto on_picture = [&](const Tensor& decoded) {
    const auto made = int(pictures.size()), frames = settings_.returned_frames();
    pictures.push_back(finished_picture(decoded, batch.first + made / frames, made % frames));
    hand_over(pictures.back(), batch.first + made / frames);
    ++progress.done;
    tell();
  };
  const auto size = settings_.size();
  model_.decode(latents_BNC, size, tiles_for(settings_.vae_tiling, size), on_picture);
  return pictures;
}

// What the caches keep of pictures goes with their last step, or with one that fails.
DenoiseResult Run::denoise_mine(DenoiseJob job, const Schedule& schedule, Batch round) {
  const CachedPictures cached(model_.denoisers());
  auto mine = take_steps(std::move(job), schedule, round);
  const auto evaluations = evaluations_of(*settings_.sampling.sampler, schedule);
  const auto full = full_steps_of_round(model_.denoisers(), model_.mesh(), my_share(round).count,
                                        int(evaluations.size()));
  facts_.full_steps.insert(facts_.full_steps.end(), full.begin(), full.end());
  return mine;
}

DenoiseResult Run::take_steps(DenoiseJob job, const Schedule& schedule, Batch round) {
  const KeepFreedMemory keep;
  Progress progress{.phase = Phase::kDenoise,
                    .done = 0,
                    .total = settings_.steps_taken(),
                    .first_picture = round.first,
                    .num_pictures = round.count};
  report(progress);
  const bool has_pictures = job.latents_BNC.size(0) > 0;
  std::optional<OncePerPicture> once;
  if (has_pictures) {
    const bool keeps_prefix = model_.family().keeps_prefix(settings_.reference_cache);
    const auto evaluations = branches_of_evaluations(job, schedule);
    once.emplace(model_.denoisers(), evaluations,
                 keeps_prefix ? Prefix::kKept : Prefix::kInEveryStep);
    modulate_controls(job, evaluations, model_.denoisers().controls());
  }
  const auto before = traffic_of(model_.mesh());
  StepPace pace(model_.device(), model_.mesh().world);
  Previews previews(model_, hooks_, settings_.size(), round.first);
  auto next = job.latents_BNC;  // for ranks without pictures, which take no steps
  const auto on_step = [&](const StepTaken& taken) {
    pace.step_is_given();
    if (facts_.step_traffic.empty())
      facts_.step_traffic = traffic_between(before, traffic_of(model_.mesh()));
    previews.show(taken);
    progress.done = taken.done;
    report(progress);
    if (taken.next_BNC.defined()) next = taken.next_BNC;
    end_step(taken.done, schedule.timesteps[std::size_t(taken.done - 1)], round, next);
  };
  if (has_pictures)
    return pace.finished(denoise(std::bind_front(&OncePerPicture::predict, &*once),
                                 model_.family().description().schedule, schedule, std::move(job),
                                 on_step));
  for (int step = 1; step <= settings_.steps_taken(); ++step) on_step({step, next, next});
  return {.latents_BNC = job.latents_BNC, .first_velocity_BNC = job.latents_BNC};
}

// Shows the first rank the latents of all pictures, and takes over what it changes. In float32:
// ranks without pictures do not know in which dtype a sampler keeps them.
void Run::end_step(int step, float timestep, Batch round, Tensor& mine_BNC) const {
  if (!observers_.step_ends) return;
  auto all = gather_pictures(model_.mesh(), mine_BNC.to(at::kFloat)).to(at::kCPU).contiguous();
  const auto& world = model_.mesh().world;
  if (hooks_.step_end) {
    StepEnd end{step, timestep, round.first, latents_of(all)};
    hooks_.step_end(end);
    all = changed_latents("the latents after a step", end.latents, all);
  }
  world.await();  // a callback takes as long as it likes
  world.broadcast_(all, 0);
  const auto mine = my_share(round);
  mine_BNC.copy_(all.narrow(0, mine.first - round.first, mine.count));
}

std::vector<Picture> Run::draw(Batch round) {
  const auto whole = schedule_of(settings_, model_.family());
  const auto schedule = whole.from(settings_.first_step);
  const auto condition = condition_of(my_share(round), round);
  if (round.first == 0) start_->encode_references();
  const auto job = prepare(my_share(round), condition, schedule.sigmas.front());
  check_same_start(job, schedule, model_.mesh().replica);
  const auto mine = denoise_mine(job, schedule, round);
  const auto of_round = [&](const Tensor& x) { return gather_pictures(model_.mesh(), x); };
  const auto latents = of_round(mine.latents_BNC);
  record("prompt_embeds", of_round(condition.text_BTC));
  if (condition.pooled_BC.defined()) record("pooled_prompt_embeds", of_round(condition.pooled_BC));
  record("latents_initial", of_round(job.latents_BNC));
  record("velocity_first", of_round(mine.first_velocity_BNC));
  record("latents_final", latents);
  if (round.first == 0) {
    record("sigmas", at::tensor(whole.sigmas));
    record("timesteps", at::tensor(whole.timesteps));
  }
  std::vector<Picture> pictures;
  const bool is_decoded = settings_.output != Output::kLatents;
  if (observers_.run.until == RunUntil::kPictures)
    pictures = is_decoded ? decode(round, latents) : undecoded(round, latents);
  model_.mesh().world.await();
  return pictures;
}

RunFacts Run::facts() && {
  facts_.phases.finish();
  facts_.graph = model_.denoisers().graph_use();
  facts_.encoded = model_.encoded_use();
  return std::move(facts_);
}

}  // namespace

Generated generate_pictures(const Model& model, const Settings& settings,
                            const BroughtAlong& brought, const Hooks& hooks,
                            const Observers& observers) {
  Run run(model, settings, hooks, observers);
  Generated generated;
  for (int first = 0; first < settings.num_pictures();) {
    run.embed_prompts(brought.pictures, first);
    if (first == 0) run.start_from(brought);
    const auto round = run.round_from(first);
    for (auto& picture : run.draw(round)) generated.pictures.push_back(std::move(picture));
    first += round.count;
  }
  generated.facts = std::move(run).facts();
  const auto& failure = generated.facts.graph.failure;
  if (!failure.empty() && hooks.warning) hooks.warning(failure);
  return generated;
}

}  // namespace braid
