#include "pipeline/families/flux2/flux2.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/flux2/model.h"
#include "models/flux2/names.h"
#include "models/flux2/sharding.h"
#include "pipeline/families/flux2/published.h"
#include "pipeline/families/flux2/references.h"
#include "pipeline/families/flux2/text.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/patches.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr double kTimestepScale = 1000;  // fixed in the pipelines, whatever the scheduler says

const char* pipeline_class(Flux2Kind kind) {
  if (kind == Flux2Kind::kDev) return "Flux2Pipeline";
  return kind == Flux2Kind::kKleinKept ? "Flux2KleinKVPipeline" : "Flux2KleinPipeline";
}

std::vector<Part> parts_of(const Flux2Configs& c) {
  auto flux = transformer_part("Flux2Transformer2DModel", c.flux.num_heads);
  flux.lists = {"double_blocks", "single_blocks"};
  flux.names = flux2_names;
  flux.sharding = [=](SharedModulation modulation) { return flux2_sharding(c.flux, modulation); };
  flux.adapters = flux2_adapter_names();
  flux.make = [=](const Weights& w) { (void)Flux2(c.flux, w); };
  return {causal_lm_part(c.text, flux2_states(c.kind)), flux, autoencoder_part(c.vae)};
}

GuidanceKind guidance_of(const Flux2Configs& c) {
  if (c.kind == Flux2Kind::kKleinBase) return GuidanceKind::kTrue;
  return c.flux.guidance_embeds ? GuidanceKind::kEmbedded : GuidanceKind::kNone;
}

// Published defaults of FLUX.2-dev, klein and klein base.
RequestDefaults defaults_of(Flux2Kind kind) {
  if (kind == Flux2Kind::kKleinDistilled || kind == Flux2Kind::kKleinKept)
    return {.steps = 4, .guidance = 1};
  return {.steps = 50, .guidance = 4};
}

Description describe(const Flux2Configs& c, const ScheduleConfig& schedule,
                     const RequestDefaults& defaults) {
  return {.family = "FLUX.2",
          .parts = parts_of(c),
          .shape = flux2_shape(c.flux),
          .limits = {.defaults = defaults,
                     .size_multiple = int(2 * c.vae.downscale()),
                     .max_text_tokens = kLongestTextTokens,
                     .guidance = guidance_of(c),
                     .pictures = flux2_pictures(c.kind, int(2 * c.vae.downscale()))},
          .schedule = schedule,
          .honours_flow_sigmas = true,
          .vae = c.vae};
}

class Flux2Family : public PackedFamily {
 public:
  Flux2Family(const Flux2Configs& configs, const ScheduleConfig& schedule,
              const RequestDefaults& defaults)
      : PackedFamily(describe(configs, schedule, defaults)), configs_(configs) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override;
  DenoiserPart load_denoiser(const Part& part, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override;
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device device,
                                                const WeightsOf& weights_of,
                                                const Warn& warn) const override;
  std::vector<PromptReader> prompt_readers() const override {
    return flux2_prompt_readers(configs_.kind);
  }

  Tokens reference(const Tensor& latents_1CHW, int number) const override;
  DenoiserInput references_alone(const std::vector<Tokens>& references) const override {
    return flux2_references_alone(references, configs_.flux.text_width);
  }

  DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                      const at::TensorOptions& like) const override;
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override;
  double mu(PictureSize size, int steps) const override {
    return empirical_shift(num_tokens(size), steps);
  }

  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? flux2_names_of_diffusers()
                                              : Names{.prefix = "model."};
  }
  Names single_file_names() const override { return flux2_names_in_one_file(); }
  std::string config_text(const Part& denoiser) const override;

 private:
  Flux2Configs configs_;
};

std::shared_ptr<const Family> Flux2Family::with_blocks(const std::vector<int>& counts) const {
  auto configs = configs_;
  auto& c = configs.flux;
  check_kinds(*this, counts);
  if (!counts.empty() && counts[0] > 0) c.num_double = counts[0];
  if (counts.size() > 1 && counts[1] > 0) c.num_single = counts[1];
  return make_flux2_family(configs, description().schedule, description().limits.defaults);
}

DenoiserPart Flux2Family::load_denoiser(const Part&, const Weights& w, Attend attend,
                                        std::optional<BlockRange> run) const {
  const auto flux = std::make_shared<const Flux2>(configs_.flux, w, std::move(attend), run);
  return {.predict = [flux](const DenoiserInput& in,
                            const Tensor& state) { return flux->advance(in, state); },
          .rope_axes = configs_.flux.rope_axes()};
}

std::unique_ptr<const TextEncoders> Flux2Family::load_text(const fs::path& folder,
                                                           at::Device device,
                                                           const WeightsOf& weights_of,
                                                           const Warn& warn) const {
  const auto w = weights_of(*text_parts().front());
  Paged<CausalLm> model{.page = w.page(),
                        .network = CausalLm(configs_.text, flux2_states(configs_.kind), w)};
  return std::make_unique<const Flux2Text>(configs_.kind, folder / "tokenizer", device,
                                           std::move(model), warn);
}

// References lie at 10, 20, ... on the first axis.
Tokens Flux2Family::reference(const Tensor& latents_1CHW, int number) const {
  constexpr int kDistance = 10;
  const auto ids = patch_positions({.rows = latents_1CHW.size(2), .columns = latents_1CHW.size(3)},
                                   latents_1CHW.device(), kDistance * (number + 1));
  return {.x_BLC = pack(latents_1CHW), .ids_LA = at::constant_pad_nd(ids, {0, 1})};
}

// Positions have 4 axes: row and column for tokens of pictures; the last axis is the place in the
// text.
DenoiserInput Flux2Family::begin(const Condition& condition, PictureSize size, double guidance,
                                 const at::TensorOptions& like) const {
  const auto in_float = like.dtype(at::kFloat);
  const auto batch = condition.text_BTC.size(0), length = condition.text_BTC.size(1);
  const auto image = patch_positions(grid(size), like.device());
  const auto place = at::arange(length, in_float).unsqueeze(1);
  DenoiserInput in{
      .noise = {.x_BLC = {}, .ids_LA = at::constant_pad_nd(image, {0, 1})},
      .text = {.x_BLC = condition.text_BTC, .ids_LA = at::constant_pad_nd(place, {3, 0})}};
  if (configs_.flux.guidance_embeds) in.guidance_B = at::full({batch}, guidance, in_float);
  return in;
}

// The timestep is cast to the latents' dtype, then divided by 1000, as the pipelines' loops do.
void Flux2Family::set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const {
  in.noise.x_BLC = latents_BNC;
  in.timestep_B = at::full({latents_BNC.size(0)}, timestep, latents_BNC.options()) / kTimestepScale;
}

std::string Flux2Family::config_text(const Part& denoiser) const {
  const auto& c = configs_.flux;
  const nlohmann::ordered_json config = {{"_class_name", denoiser.class_name},
                                         {"attention_head_dim", c.head_width},
                                         {"axes_dims_rope", c.axes},
                                         {"eps", 1e-6},
                                         {"guidance_embeds", c.guidance_embeds},
                                         {"in_channels", c.in_channels},
                                         {"joint_attention_dim", c.text_width},
                                         {"mlp_ratio", ratio_to(c.hidden(), c.mlp_hidden)},
                                         {"num_attention_heads", c.num_heads},
                                         {"num_layers", c.num_double},
                                         {"num_single_layers", c.num_single},
                                         {"out_channels", c.out_channels},
                                         {"patch_size", 1},
                                         {"rope_theta", c.theta},
                                         {"timestep_guidance_channels", c.sinusoid}};
  return config.dump(2) + "\n";
}

// Each part's output must match the next part's input.
void check_fit(const Flux2Configs& c) {
  const auto states = std::int64_t(flux2_states(c.kind).size());
  require(c.flux.text_width == states * c.text.hidden,
          "the transformer takes embedded text of width ", c.flux.text_width,
          ", the text encoder makes ", states, " x ", c.text.hidden);
  const auto packed = 4 * c.vae.latent_channels;
  require(c.flux.in_channels == packed && c.flux.out_channels == packed, "the transformer takes ",
          c.flux.in_channels, " and makes ", c.flux.out_channels, " channels, the autoencoder has ",
          packed, " when packed");
  require(c.vae.batch_norm_eps.has_value(), "a ", pipeline_class(c.kind),
          " needs an AutoencoderKLFlux2, the autoencoder is an AutoencoderKL");
  const bool is_klein = c.kind != Flux2Kind::kDev;
  require(!is_klein || !c.flux.guidance_embeds, "the transformer of a ", pipeline_class(c.kind),
          " takes no ", "guidance scale: 'guidance_embeds' should be false");
  const bool is_qwen = c.text.head_norm == HeadNorm::kYes;
  require(is_qwen == is_klein, "the text encoder of a ", pipeline_class(c.kind), " should be a ",
          is_klein ? "Qwen3" : "Mistral", " model, it is a ", is_qwen ? "Qwen3" : "Mistral",
          " model");
}

std::shared_ptr<const Family> open_flux2(const ModelFiles& files, Flux2Kind kind) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const Flux2Configs configs{
      .kind = kind,
      .flux = read_denoiser(files, "transformer", read_flux2_config, infer_flux2_config),
      .text = read_causal_lm_config(config("text_encoder")),
      .vae = read_autoencoder(files)};
  check_fit(configs);
  return make_flux2_family(configs, read_scheduler(files), read_defaults(files, defaults_of(kind)));
}

std::shared_ptr<const Family> open_klein(const ModelFiles& files) {
  const auto index = read_json_object(files.folder / "model_index.json");
  const bool is_distilled = index.flag_or("is_distilled", false);
  return open_flux2(files, is_distilled ? Flux2Kind::kKleinDistilled : Flux2Kind::kKleinBase);
}

std::shared_ptr<const Family> named_flux2(const std::string& name) {
  const auto configs = published_flux2(name);
  return make_flux2_family(configs, {.shift = 3, .use_dynamic_shifting = true},
                           defaults_of(configs.kind));
}

FamilyEntry entry_of(Flux2Kind kind) {
  return {.pipeline_class = pipeline_class(kind),
          .transformer_class = "Flux2Transformer2DModel",
          .folders = {"text_encoder", "tokenizer", "vae", "scheduler", "transformer"},
          .single_file_has = {"single_stream_modulation.lin.weight",
                              "single_stream_modulation.linear.weight"},
          .published = {},
          .publisher = "black-forest-labs",
          .open = {},
          .named = named_flux2};
}

}  // namespace

std::shared_ptr<const Family> make_flux2_family(const Flux2Configs& configs,
                                                const ScheduleConfig& schedule,
                                                const RequestDefaults& defaults) {
  return std::make_shared<const Flux2Family>(configs, schedule, defaults);
}

FamilyEntry flux2_klein_family() {
  auto entry = entry_of(Flux2Kind::kKleinDistilled);
  entry.kin_classes = {"Flux2KleinInpaintPipeline"};
  entry.published = {"klein-4b", "klein-9b", "klein-base-4b", "klein-base-9b"};
  entry.open = open_klein;
  return entry;
}

FamilyEntry flux2_kept_klein_family() {
  auto entry = entry_of(Flux2Kind::kKleinKept);
  entry.published = {"klein-9b-kv"};
  entry.open = [](const ModelFiles& files) { return open_flux2(files, Flux2Kind::kKleinKept); };
  return entry;
}

FamilyEntry flux2_dev_family() {
  auto entry = entry_of(Flux2Kind::kDev);
  entry.published = {"flux2-dev"};
  entry.open = [](const ModelFiles& files) { return open_flux2(files, Flux2Kind::kDev); };
  return entry;
}

}  // namespace braid
