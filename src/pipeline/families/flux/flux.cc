#include "pipeline/families/flux/flux.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "pipeline/families/flux/controlnets.h"
#include "pipeline/families/flux/describe.h"
#include "pipeline/families/flux/text.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/patches.h"
#include "weights/adapters/change.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr double kTimestepScale = 1000;  // fixed in FluxPipeline, whatever num_train_timesteps says

class FluxFamily : public PatchFamily {
 public:
  FluxFamily(const FluxConfigs& configs, const ScheduleConfig& schedule,
             const RequestDefaults& defaults)
      : PatchFamily(describe_flux(configs, schedule, defaults)), configs_(configs) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override;
  std::shared_ptr<const Family> widened_by(
      const std::vector<AppliedAdapter>& adapters) const override;
  DenoiserPart load_denoiser(const Part& part, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override;
  Controls load_controls(const WeightsOf& weights_of, const Attend& attend) const override {
    return load_controlnets(configs_.controlnets, configs_.flux.num_double,
                            parts(Part::Role::kControl), weights_of, attend);
  }
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device device,
                                                const WeightsOf& weights_of,
                                                const Warn& warn) const override;
  std::vector<PromptReader> prompt_readers() const override { return flux_prompt_readers(); }

  EmbedPicture load_picture_embedder(const WeightsOf& weights_of) const override {
    return load_flux_redux(*configs_.redux, parts(Part::Role::kPicture), weights_of);
  }
  Condition behind_prompt(const Condition& embedded, const Prompt& prompt,
                          const EmbeddedPictures& pictures) const override {
    return redux_behind_prompt(embedded, prompt, pictures);
  }

  DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                      const at::TensorOptions& like) const override;
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override;
  ControlInput control(const DenoiserInput& in, int net, std::optional<int> mode,
                       double guidance) const override {
    return controlnet_input(configs_.controlnets[std::size_t(net)], in, mode, guidance);
  }
  Schedule schedule(int steps, PictureSize size, StartsFrom start) const override;

  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? flux_names_of_diffusers() : t5_names();
  }
  Names single_file_names() const override { return flux_names_in_one_file(); }
  std::string config_text(const Part& denoiser) const override;

 private:
  FluxConfigs configs_;
};

std::shared_ptr<const Family> FluxFamily::with_blocks(const std::vector<int>& counts) const {
  auto configs = configs_;
  auto& c = configs.flux;
  check_kinds(*this, counts);
  if (!counts.empty() && counts[0] > 0) c.num_double = counts[0];
  if (counts.size() > 1 && counts[1] > 0) c.num_single = counts[1];
  return std::make_shared<const FluxFamily>(configs, description().schedule,
                                            description().limits.defaults);
}

// A Control LoRA turns a plain model into one that follows a picture.
std::shared_ptr<const Family> FluxFamily::widened_by(
    const std::vector<AppliedAdapter>& adapters) const {
  auto configs = configs_;
  auto& c = configs.flux;
  configs.stored_channels = c.in_channels;
  c.in_channels += flux_extra_channels(FluxKind::kControl, configs_.vae);
  const bool widens = std::any_of(adapters.begin(), adapters.end(), [&](const auto& adapter) {
    return inputs_of(*adapter.file, flux_adapter_names(), kFluxInput, c.hidden()) == c.in_channels;
  });
  if (!widens || configs_.kind != FluxKind::kPlain) return nullptr;
  require(configs_.controlnets.empty(), "a LoRA already makes the model follow a picture: ",
          "it cannot be used with ControlNets");
  configs.kind = FluxKind::kControl;
  return std::make_shared<const FluxFamily>(configs, description().schedule,
                                            description().limits.defaults);
}

// Only FluxPipeline itself looks at use_flow_sigmas.
Schedule FluxFamily::schedule(int steps, PictureSize size, StartsFrom start) const {
  auto config = description().schedule;
  if (configs_.kind != FluxKind::kPlain || start != StartsFrom::kNoise)
    config.use_flow_sigmas = false;
  return make_schedule(config, steps, num_tokens(size));
}

DenoiserPart FluxFamily::load_denoiser(const Part&, const Weights& w, Attend attend,
                                       std::optional<BlockRange> run) const {
  return part_of(std::make_shared<const Flux>(configs_.flux, w, std::move(attend), run));
}

std::unique_ptr<const TextEncoders> FluxFamily::load_text(const fs::path& folder, at::Device device,
                                                          const WeightsOf& weights_of,
                                                          const Warn&) const {
  const auto parts = text_parts();
  auto clip = load_paged<Clip>(configs_.clip, weights_of(*parts[0]));
  auto t5 = load_paged<T5>(configs_.t5, weights_of(*parts[1]));
  return std::make_unique<const FluxText>(folder, device, std::move(clip), std::move(t5));
}

DenoiserInput FluxFamily::begin(const Condition& condition, PictureSize size, double guidance,
                                const at::TensorOptions& like) const {
  const auto in_float = like.dtype(at::kFloat);
  const auto batch = condition.text_BTC.size(0);
  DenoiserInput in{.noise = {.x_BLC = {}, .ids_LA = patch_positions(grid(size), like.device())},
                   .text = {.x_BLC = condition.text_BTC,
                            .ids_LA = at::zeros({condition.text_BTC.size(1), 3}, in_float)},
                   .pooled_BC = condition.pooled_BC};
  if (configs_.flux.guidance_embeds) in.guidance_B = at::full({batch}, guidance, in_float);
  return in;
}

// The timestep is cast to the latents' dtype, then divided by 1000, as FluxPipeline's loop does.
void FluxFamily::set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const {
  const auto in_float = latents_BNC.options().dtype(at::kFloat);
  in.noise.x_BLC = latents_BNC;
  in.timestep_B =
      at::full({latents_BNC.size(0)}, timestep, in_float).to(latents_BNC.scalar_type()) /
      kTimestepScale;
}

std::string FluxFamily::config_text(const Part& denoiser) const {
  const auto& c = configs_.flux;
  const nlohmann::ordered_json config = {{"_class_name", denoiser.class_name},
                                         {"attention_head_dim", c.head_width},
                                         {"axes_dims_rope", c.axes},
                                         {"guidance_embeds", c.guidance_embeds},
                                         {"in_channels", c.in_channels},
                                         {"joint_attention_dim", c.text_width},
                                         {"num_attention_heads", c.num_heads},
                                         {"num_layers", c.num_double},
                                         {"num_single_layers", c.num_single},
                                         {"out_channels", c.out_channels},
                                         {"patch_size", 1},
                                         {"pooled_projection_dim", c.pooled_width}};
  return config.dump(2) + "\n";
}

// Each part's output must match the next part's input.
void check_fit(const FluxConfigs& c) {
  require(c.flux.pooled_width == c.clip.hidden, "the transformer takes pooled prompts of width ",
          c.flux.pooled_width, ", the text encoder makes ", c.clip.hidden);
  require(c.flux.text_width == c.t5.hidden, "the transformer takes embedded text of width ",
          c.flux.text_width, ", the second text encoder makes ", c.t5.hidden);
  const auto packed = 4 * c.vae.latent_channels;
  const auto extra = flux_extra_channels(c.kind, c.vae);
  require(c.flux.in_channels == packed + extra && c.flux.out_channels == packed,
          "the transformer takes ", c.flux.in_channels, " and makes ", c.flux.out_channels,
          " channels, that of a ", flux_pipeline(c.kind), " with this autoencoder takes ",
          packed + extra, " and makes ", packed);
}

std::shared_ptr<const Family> open(const ModelFiles& files, FluxKind kind) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  FluxConfigs configs{
      .kind = kind,
      .flux = read_denoiser(files, "transformer", read_flux_config, infer_flux_config),
      .clip = read_clip_config(config("text_encoder")),
      .t5 = read_t5_config(config("text_encoder_2")),
      .vae = read_autoencoder(files)};
  check_fit(configs);
  configs.controlnets = read_controlnets(files, configs.flux, configs.vae);
  configs.redux = read_flux_redux(files, configs.flux);
  const auto schedule = read_scheduler(files);
  return std::make_shared<const FluxFamily>(configs, schedule,
                                            read_defaults(files, flux_defaults(configs, schedule)));
}

std::vector<std::string> published_models(FluxKind kind) {
  switch (kind) {
    case FluxKind::kPlain:
      return {"flux1-dev", "flux1-schnell"};
    case FluxKind::kKontext:
      return {"flux1-kontext-dev"};
    case FluxKind::kFill:
      return {"flux1-fill-dev"};
    case FluxKind::kControl:
      return {"flux1-canny-dev", "flux1-depth-dev"};
  }
  return {};
}

// The configs' defaults are those of FLUX.1.
std::shared_ptr<const Family> named(const std::string& name, FluxKind kind) {
  FluxConfigs configs{.kind = kind};
  configs.flux.in_channels += flux_extra_channels(kind, configs.vae);
  configs.flux.guidance_embeds = name != "flux1-schnell";
  const bool is_dev = configs.flux.guidance_embeds;
  const ScheduleConfig schedule{.shift = is_dev ? 3.0 : 1.0, .use_dynamic_shifting = is_dev};
  return std::make_shared<const FluxFamily>(configs, schedule, flux_defaults(configs, schedule));
}

}  // namespace

std::shared_ptr<const Family> make_flux_family(const FluxConfigs& configs,
                                               const ScheduleConfig& schedule,
                                               const RequestDefaults& defaults) {
  return std::make_shared<const FluxFamily>(configs, schedule, defaults);
}

FamilyEntry flux_family(FluxKind kind) {
  return {.pipeline_class = flux_pipeline(kind),
          .kin_classes = flux_kin_pipelines(kind),
          .transformer_class = "FluxTransformer2DModel",
          .folders = {"text_encoder", "text_encoder_2", "tokenizer", "tokenizer_2", "vae",
                      "scheduler", "transformer"},
          .single_file_has = {"vector_in.in_layer.weight",
                              "time_text_embed.text_embedder.linear_1.weight"},
          .published = published_models(kind),
          .publisher = "black-forest-labs",
          .takes_controlnets = kind == FluxKind::kPlain,
          .takes_redux = kind != FluxKind::kKontext,
          .open = [=](const ModelFiles& files) { return open(files, kind); },
          .named = [=](const std::string& name) { return named(name, kind); }};
}

}  // namespace braid
