#include "pipeline/families/flux3/flux3.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/flux3/model.h"
#include "models/flux3/names.h"
#include "pipeline/families/flux3/describe.h"
#include "pipeline/families/flux3/text.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/patches.h"
#include "pipeline/files/model_folder.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr float kFlux3TimestepScale = 1000;  // fixed in the pipelines
constexpr double kPositionScale = 0.5;       // of rows and columns
constexpr std::size_t kNumKinds = 4;         // of blocks

class Flux3Family : public PackedFamily {
 public:
  Flux3Family(const Flux3Configs& configs, const ScheduleConfig& schedule,
              const RequestDefaults& defaults)
      : PackedFamily(describe_flux3(configs, schedule, defaults)), configs_(configs) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override;
  DenoiserPart load_denoiser(const Part&, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override {
    return part_of(std::make_shared<const Flux3>(configs_.flux, w, std::move(attend), run));
  }
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device device,
                                                const WeightsOf& weights_of,
                                                const Warn& warn) const override;
  std::vector<PromptReader> prompt_readers() const override { return flux3_prompt_readers(); }

  Tokens reference(const Tensor& latents_1CHW, int number) const override;
  DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                      const at::TensorOptions& like) const override;
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override;

  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? flux3_names_of_diffusers()
                                              : Names{.prefix = "model.language_model."};
  }
  Names single_file_names() const override { return flux3_names_in_one_file(); }
  std::string config_text(const Part& denoiser) const override;

 private:
  static Tensor positions(PatchGrid grid, double last, at::Device device);

  Flux3Configs configs_;
};

// The modes have as many blocks each.
std::shared_ptr<const Family> Flux3Family::with_blocks(const std::vector<int>& counts) const {
  auto configs = configs_;
  check_kinds(*this, counts);
  auto asked = counts;
  asked.resize(kNumKinds);
  for (std::size_t mode = 0; mode + 1 < kNumKinds; ++mode) {
    if (asked[mode] == 0) continue;
    for (std::size_t other = 0; other < mode; ++other)
      require(asked[other] == 0 || asked[other] == asked[mode],
              "a FLUX.3 model has as many blocks of image, text and references, not ", asked[other],
              " and ", asked[mode]);
    configs.flux.num_mode = asked[mode];
  }
  if (asked.back() > 0) configs.flux.num_single = asked.back();
  return make_flux3_family(configs, description().schedule, description().limits.defaults);
}

std::unique_ptr<const TextEncoders> Flux3Family::load_text(const fs::path& folder,
                                                           at::Device device,
                                                           const WeightsOf& weights_of,
                                                           const Warn& warn) const {
  const auto w = weights_of(*text_parts().front());
  return std::make_unique<const Flux3Text>(
      folder / "tokenizer", device,
      Paged<CausalLm>{.page = w.page(), .network = CausalLm(configs_.text, flux3_states(), w)},
      warn);
}

// (0, row, column, last), rows and columns as far apart as in training.
Tensor Flux3Family::positions(PatchGrid grid, double last, at::Device device) {
  const auto ids = patch_positions(grid, device) * kPositionScale;
  return at::constant_pad_nd(ids, {0, 1}, last);
}

// The picture is at 0 on the last axis, references at -1, -2, ...
Tokens Flux3Family::reference(const Tensor& latents_1CHW, int number) const {
  const PatchGrid grid{.rows = latents_1CHW.size(2), .columns = latents_1CHW.size(3)};
  return {.x_BLC = pack(latents_1CHW),
          .ids_LA = positions(grid, -1 - number, latents_1CHW.device())};
}

DenoiserInput Flux3Family::begin(const Condition& condition, PictureSize size, double,
                                 const at::TensorOptions& like) const {
  const auto place = at::arange(condition.text_BTC.size(1), like.dtype(at::kFloat)).unsqueeze(1);
  return {.noise = {.x_BLC = {}, .ids_LA = positions(grid(size), 0, like.device())},
          .text = {.x_BLC = condition.text_BTC, .ids_LA = at::constant_pad_nd(place, {3, 0})}};
}

// Timesteps are divided in float32, then cast to the latents' dtype, as the pipelines' loops do.
void Flux3Family::set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const {
  const auto level = [&](float at) {
    return at::full({latents_BNC.size(0)}, at / kFlux3TimestepScale, latents_BNC.options());
  };
  in.noise.x_BLC = latents_BNC;
  in.timestep_B = level(timestep);
  if (configs_.flux.flow_map) in.target_timestep_B = level(in.step.next);
}

std::string Flux3Family::config_text(const Part& denoiser) const {
  const auto& c = configs_.flux;
  const nlohmann::ordered_json config = {{"_class_name", denoiser.class_name},
                                         {"attention_head_dim", c.head_width},
                                         {"axes_dims_rope", c.axes},
                                         {"cond_in_channels", c.reference_width},
                                         {"eps", c.norm_eps},
                                         {"flow_map", c.flow_map},
                                         {"in_channels", c.token_width},
                                         {"joint_attention_dim", c.text_width},
                                         {"mlp_ratio", ratio_to(c.hidden(), c.mlp_hidden)},
                                         {"num_attention_heads", c.num_heads},
                                         {"num_layers", c.num_mode},
                                         {"num_single_layers", c.num_single},
                                         {"rope_theta", c.theta},
                                         {"timestep_channels", c.sinusoid}};
  return config.dump(2) + "\n";
}

// Each part's output must match the next part's input.
void check_fit(const Flux3Configs& c, const std::string& class_name) {
  const auto states = std::int64_t(flux3_states().size());
  require(c.flux.text_width == states * c.text.hidden,
          "the transformer takes embedded text of width ", c.flux.text_width,
          ", the text encoder makes ", states, " x ", c.text.hidden);
  const auto packed = 4 * c.vae.latent_channels;
  require(c.flux.token_width == packed && c.flux.reference_width == packed,
          "the transformer takes ", c.flux.token_width, " channels of the picture and ",
          c.flux.reference_width, " of references, the autoencoder has ", packed, " when packed");
  require(c.vae.batch_norm_eps.has_value(), "a ", class_name,
          " needs an AutoencoderKLFlux2, the autoencoder is an AutoencoderKL");
  const bool is_distilled = class_name.find("Distilled") != class_name.npos;
  require(!is_distilled || c.flux.flow_map, "the transformer of a ", class_name,
          " should be a flow map: its 'flow_map' should be true");
}

// The guider in a model's folder, if the index names it, says the default scale of its pipelines.
RequestDefaults guided_as_in(const ModelFiles& files, const JsonObject& index,
                             RequestDefaults defaults) {
  constexpr double kScaleOfClass = 7.5;
  const auto path = files.folder / "guider" / "guider_config.json";
  if (!index.has("guider") || !is_there(path)) return defaults;
  const auto json = read_json_object(path);
  json.check_class("ClassifierFreeGuidance");
  for (const auto& [key, usual] :
       {std::pair{"guidance_rescale", 0.0}, {"start", 0.0}, {"stop", 1.0}})
    require(json.number_or(key, usual) == usual, json.source(), ": '", key, "' should be ", usual,
            ", it is ", json.number_or(key, usual));
  require(!json.flag_or("use_original_formulation", false), json.source(),
          ": 'use_original_formulation' should be false");
  const auto scale = json.number_or("guidance_scale", kScaleOfClass);
  defaults.guidance = json.is_set("enabled") ? scale : 1;
  return defaults;
}

std::shared_ptr<const Family> open(const ModelFiles& files) {
  const auto index = read_json_object(index_of(files.folder));
  const auto config = read_json_object(files.config_of("text_encoder"));
  const Flux3Configs configs{
      .flux = read_denoiser(files, "transformer", read_flux3_config, infer_flux3_config),
      .text = read_qwen3_vl_language_model(config),
      .vae = read_autoencoder(files)};
  check_fit(configs, index.string_or("_class_name", ""));
  const bool has_scheduler =
      index.has("scheduler") && is_there(files.folder / "scheduler" / "scheduler_config.json");
  auto defaults = flux3_defaults(configs.flux);
  if (!configs.flux.flow_map) defaults = guided_as_in(files, index, defaults);
  return make_flux3_family(configs, has_scheduler ? read_scheduler(files) : kFlux3Schedule,
                           read_defaults(files, defaults));
}

// The configs' defaults are the published ones.
std::shared_ptr<const Family> named(const std::string& name) {
  const Flux3Configs configs{.flux = {.flow_map = name == "flux3-klein"}};
  return make_flux3_family(configs, kFlux3Schedule, flux3_defaults(configs.flux));
}

}  // namespace

std::shared_ptr<const Family> make_flux3_family(const Flux3Configs& configs,
                                                const ScheduleConfig& schedule,
                                                const RequestDefaults& defaults) {
  return std::make_shared<const Flux3Family>(configs, schedule, defaults);
}

FamilyEntry flux3_family() {
  return {.pipeline_class = "Flux3ModularPipeline",
          .kin_classes = {"Flux3DistilledModularPipeline"},
          .transformer_class = "Flux3Transformer2DModel",
          .folders = {"text_encoder", "tokenizer", "vae", "transformer"},
          .optional_folders = {"scheduler", "guider"},
          .single_file_has = {"emb_in.image.weight", "x_embedders.image.weight"},
          .published = {"flux3-klein", "flux3-klein-base"},
          .open = open,
          .named = named};
}

}  // namespace braid
