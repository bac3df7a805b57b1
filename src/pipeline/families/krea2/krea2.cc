#include "pipeline/families/krea2/krea2.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/krea2/model.h"
#include "models/krea2/names.h"
#include "pipeline/families/krea2/describe.h"
#include "pipeline/families/krea2/text.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/patches.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr double kTurboShift = 1.15;  // fixed in the pipeline
constexpr std::int64_t kWidestPatch = 64;

class Krea2Family : public PatchFamily {
 public:
  Krea2Family(const Krea2Configs& configs, const ScheduleConfig& schedule,
              const RequestDefaults& defaults)
      : PatchFamily(describe_krea2(configs, schedule, defaults)), configs_(configs) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override;
  DenoiserPart load_denoiser(const Part& part, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override;
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device device,
                                                const WeightsOf& weights_of,
                                                const Warn& warn) const override;
  std::vector<PromptReader> prompt_readers() const override { return krea2_prompt_readers(); }

  DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                      const at::TensorOptions& like) const override;
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override;
  std::int64_t patch() const override { return configs_.patch; }
  double mu(PictureSize size, int steps) const override {
    return configs_.kind == Krea2Kind::kTurbo ? kTurboShift : PatchFamily::mu(size, steps);
  }

  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? krea2_names_of_diffusers()
                                              : Names{.prefix = "language_model."};
  }
  Names single_file_names() const override { return krea2_names_in_one_file(); }
  std::string config_text(const Part& denoiser) const override;

 private:
  Krea2Configs configs_;
};

std::shared_ptr<const Family> Krea2Family::with_blocks(const std::vector<int>& counts) const {
  auto configs = configs_;
  check_kinds(*this, counts);
  require(counts.size() < 2 || counts[1] <= 1, "a Krea 2 model fuses its text once, not ",
          counts.size() < 2 ? 0 : counts[1], " times");
  if (!counts.empty() && counts[0] > 0) configs.krea.num_layers = counts[0];
  return make_krea2_family(configs, description().schedule, description().limits.defaults);
}

DenoiserPart Krea2Family::load_denoiser(const Part&, const Weights& w, Attend attend,
                                        std::optional<BlockRange> run) const {
  const auto krea = std::make_shared<const Krea2>(configs_.krea, w, std::move(attend), run);
  auto part = part_of(krea);
  part.refine = [krea](const DenoiserInput& in, const Tensor& text_BTC) {
    return krea->refine(in, text_BTC);
  };
  return part;
}

std::unique_ptr<const TextEncoders> Krea2Family::load_text(const fs::path& folder,
                                                           at::Device device,
                                                           const WeightsOf& weights_of,
                                                           const Warn&) const {
  const auto w = weights_of(*text_parts().front());
  return std::make_unique<const Krea2Text>(
      folder / "tokenizer", device,
      Paged<CausalLm>{.page = w.page(), .network = CausalLm(configs_.text, configs_.taps, w)});
}

DenoiserInput Krea2Family::begin(const Condition& condition, PictureSize size, double,
                                 const at::TensorOptions& like) const {
  const auto origins = at::zeros({condition.text_BTC.size(1), 3}, like.dtype(at::kFloat));
  return {.noise = {.x_BLC = {}, .ids_LA = patch_positions(grid(size), like.device())},
          .text = {.x_BLC = condition.text_BTC, .ids_LA = origins}};
}

// Sigma is rounded to the latents' dtype, as the pipeline's loop does.
void Krea2Family::set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const {
  in.noise.x_BLC = latents_BNC;
  const auto sigma = timestep / float(description().schedule.num_train_timesteps);
  in.timestep_B = at::full({latents_BNC.size(0)}, sigma, latents_BNC.options());
}

std::string Krea2Family::config_text(const Part& denoiser) const {
  const auto& c = configs_.krea;
  const nlohmann::ordered_json config = {{"_class_name", denoiser.class_name},
                                         {"attention_head_dim", c.image.head_width()},
                                         {"axes_dims_rope", c.axes},
                                         {"in_channels", c.token_width},
                                         {"intermediate_size", c.image.mlp_hidden},
                                         {"norm_eps", c.norm_eps},
                                         {"num_attention_heads", c.image.num_heads},
                                         {"num_key_value_heads", c.image.num_kv_heads},
                                         {"num_layers", c.num_layers},
                                         {"num_layerwise_text_blocks", c.num_tap_blocks},
                                         {"num_refiner_text_blocks", c.num_text_blocks},
                                         {"num_text_layers", c.num_taps},
                                         {"rope_theta", c.theta},
                                         {"text_hidden_dim", c.text.hidden},
                                         {"text_intermediate_size", c.text.mlp_hidden},
                                         {"text_num_attention_heads", c.text.num_heads},
                                         {"text_num_key_value_heads", c.text.num_kv_heads},
                                         {"timestep_embed_dim", c.sinusoid}};
  return config.dump(2) + "\n";
}

// Each part's output must match the next part's input.
void check_fit(const Krea2Configs& c) {
  const auto taps = std::int64_t(c.taps.size());
  require(c.krea.num_taps == taps, "the transformer takes ", c.krea.num_taps,
          " hidden states of the text encoder, 'text_encoder_select_layers' names ", taps);
  require(c.krea.text.hidden == c.text.hidden, "the transformer takes embedded text of width ",
          c.krea.text.hidden, ", the text encoder makes ", c.text.hidden);
  const auto of_patch = c.patch * c.patch * c.vae.latent_channels;
  require(c.krea.token_width == of_patch, "the transformer takes tokens of ", c.krea.token_width,
          " channels, ", c.patch, " x ", c.patch, " of the autoencoder's latents have ", of_patch);
  require(c.vae.is_wan(), "a Krea2Pipeline needs an AutoencoderKLQwenImage");
}

HiddenStates read_taps(const JsonObject& index, const HiddenStates& published) {
  constexpr std::int64_t kMostLayers = 10'000;
  return index.integers_or("text_encoder_select_layers", published, -kMostLayers, kMostLayers);
}

std::shared_ptr<const Family> open(const ModelFiles& files) {
  const auto index = read_json_object(files.folder / "model_index.json");
  const auto kind = index.flag_or("is_distilled", false) ? Krea2Kind::kTurbo : Krea2Kind::kRaw;
  const Krea2Configs configs{
      .kind = kind,
      .krea = read_denoiser(files, "transformer", read_krea2_config, infer_krea2_config),
      .text = read_qwen3_vl_language_model(read_json_object(files.config_of("text_encoder"))),
      .taps = read_taps(index, Krea2Configs().taps),
      .vae = read_autoencoder(files),
      .patch = index.integer_or("patch_size", 2, 1, kWidestPatch)};
  check_fit(configs);
  return make_krea2_family(configs, read_scheduler(files),
                           read_defaults(files, krea2_defaults(kind)));
}

// The configs' defaults are the published ones.
std::shared_ptr<const Family> named(const std::string& name) {
  const auto kind = name == "krea-2-turbo" ? Krea2Kind::kTurbo : Krea2Kind::kRaw;
  return make_krea2_family({.kind = kind},
                           {.use_dynamic_shifting = true, .max_image_seq_len = 6400},
                           krea2_defaults(kind));
}

}  // namespace

std::shared_ptr<const Family> make_krea2_family(const Krea2Configs& configs,
                                                const ScheduleConfig& schedule,
                                                const RequestDefaults& defaults) {
  return std::make_shared<const Krea2Family>(configs, schedule, defaults);
}

FamilyEntry krea2_family() {
  return {.pipeline_class = "Krea2Pipeline",
          .transformer_class = "Krea2Transformer2DModel",
          .folders = {"text_encoder", "tokenizer", "vae", "scheduler", "transformer"},
          .single_file_has = {"txtfusion.projector.weight", "text_fusion.projector.weight"},
          .published = {"krea-2-raw", "krea-2-turbo"},
          .open = open,
          .named = named};
}

}  // namespace braid
