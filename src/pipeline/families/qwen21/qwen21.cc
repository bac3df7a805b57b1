#include "pipeline/families/qwen21/qwen21.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/qwen21/model.h"
#include "models/qwen21/names.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/patches.h"
#include "pipeline/families/qwen21/describe.h"
#include "pipeline/families/qwen21/text.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPixelsOfLatent = 16;  // fixed in the pipeline
constexpr double kTimestepsPerSigma = 1000;   // likewise

// Rows and columns [N 3] of a picture around its centre; it has no place in the sequence yet.
Tensor centred_positions(PatchGrid grid, at::Device device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const auto centred = [&](std::int64_t count) {
    return at::arange(count, options) - double(count - count / 2);
  };
  const auto axes = at::meshgrid({centred(grid.rows), centred(grid.columns)}, "ij");
  return at::stack({at::zeros_like(axes[0]), axes[0], axes[1]}, -1).flatten(0, 1);
}

// How far a picture advances positions: its longer side.
std::int64_t longer_side(const Tensor& ids_LA) {
  const auto extent = ids_LA.amax(0) - ids_LA.amin(0) + 1;
  return extent.narrow(0, 1, 2).max().item().toLong();
}

class Qwen21Family : public PackedFamily {
 public:
  Qwen21Family(const Qwen21Configs& configs, const ScheduleConfig& schedule,
               const RequestDefaults& defaults)
      : PackedFamily(describe_qwen21(configs, schedule, defaults)), configs_(configs) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override;
  DenoiserPart load_denoiser(const Part& part, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override;
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device device,
                                                const WeightsOf& weights_of,
                                                const Warn& warn) const override;
  std::vector<PromptReader> prompt_readers() const override { return qwen21_prompt_readers(); }

  // A convolution's bytes depend on how its input lies in memory: here latents lie row by row.
  Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const override {
    return PackedFamily::unpack(tokens_BNC, size).contiguous();
  }
  Tokens reference(const Tensor& latents_1ZHW, int) const override {
    return {
        .x_BLC = pack(latents_1ZHW),
        .ids_LA = centred_positions({.rows = latents_1ZHW.size(2), .columns = latents_1ZHW.size(3)},
                                    latents_1ZHW.device())};
  }

  DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                      const at::TensorOptions& like) const override;
  void arrange(DenoiserInput& in) const override;
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override;

  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? qwen21_names_of_diffusers()
                                              : Names{.prefix = "model."};
  }
  Names single_file_names() const override { return qwen21_names_in_one_file(); }
  std::string config_text(const Part& denoiser) const override;

 private:
  std::int64_t patch() const override { return 1; }

  Qwen21Configs configs_;
};

std::shared_ptr<const Family> Qwen21Family::with_blocks(const std::vector<int>& counts) const {
  auto configs = configs_;
  check_kinds(*this, counts);
  if (!counts.empty() && counts[0] > 0) configs.qwen.num_layers = counts[0];
  return make_qwen21_family(configs, description().schedule, description().limits.defaults);
}

DenoiserPart Qwen21Family::load_denoiser(const Part&, const Weights& w, Attend attend,
                                         std::optional<BlockRange> run) const {
  return part_of(std::make_shared<const Qwen21>(configs_.qwen, w, std::move(attend), run));
}

std::unique_ptr<const TextEncoders> Qwen21Family::load_text(const fs::path& folder,
                                                            at::Device device,
                                                            const WeightsOf& weights_of,
                                                            const Warn& warn) const {
  const auto w = weights_of(*text_parts().front());
  return std::make_unique<const Qwen21Text>(configs_.text, folder / "processor", device,
                                            load_paged<Qwen3Vl>(configs_.text, w), warn);
}

// Until arrange(), a text token's span says only how many references stand before it.
DenoiserInput Qwen21Family::begin(const Condition& condition, PictureSize size, double,
                                  const at::TensorOptions& like) const {
  const auto length = condition.text_BTC.size(1);
  const auto places = at::arange(length, at::TensorOptions(at::kLong).device(like.device()));
  auto before = at::zeros_like(places);
  if (condition.places_R.defined())
    before = condition.places_R.to(like.device()).unsqueeze(1).le(places).sum(0);
  return {.noise = {.x_BLC = {}, .ids_LA = centred_positions(grid(size), like.device())},
          .text = {.x_BLC = condition.text_BTC,
                   .ids_LA = places.to(at::kFloat).unsqueeze(1).expand({-1, 3}),
                   .span_L2 = at::stack({before, places}, 1).to(at::kInt)}};
}

// Tokens of text advance position and place by one, pictures by their longer side and their size.
void Qwen21Family::arrange(DenoiserInput& in) const {
  const auto device = in.text.ids_LA.device();
  const auto before_L = in.text.span_L2.select(1, 0).cpu();
  const auto length = before_L.size(0);
  auto place_L = at::arange(length, at::kLong), position_L = at::arange(length, at::kLong);
  std::int64_t places = 0, positions = 0;  // of the references so far
  for (std::size_t i = 0; i < in.references.size(); ++i) {
    auto& reference = in.references[i];
    const auto is_behind = before_L.gt(std::int64_t(i));
    const auto text_before = length - is_behind.sum().item<std::int64_t>();
    const auto count = reference.ids_LA.size(0), side = longer_side(reference.ids_LA);
    const auto first = text_before + places;
    const auto options = at::TensorOptions(at::kInt).device(device);
    reference.span_L2 = at::stack(
        {at::arange(first, first + count, options), at::full({count}, first + count - 1, options)},
        1);
    reference.ids_LA = reference.ids_LA.clone();
    reference.ids_LA.select(1, 0).fill_(double(text_before + positions));
    place_L += is_behind * count;
    position_L += is_behind * side;
    places += count;
    positions += side;
  }
  in.text.span_L2 = at::stack({place_L, place_L}, 1).to(device, at::kInt);
  in.text.ids_LA = position_L.to(device, at::kFloat).unsqueeze(1).expand({-1, 3}).contiguous();
  in.noise.ids_LA = in.noise.ids_LA.clone();
  in.noise.ids_LA.select(1, 0).fill_(double(length + positions));
}

// The timestep is rounded to the latents' dtype before it becomes sigma, and again after.
void Qwen21Family::set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const {
  in.noise.x_BLC = latents_BNC;
  in.timestep_B =
      at::full({latents_BNC.size(0)}, timestep, latents_BNC.options()) / kTimestepsPerSigma;
}

std::string Qwen21Family::config_text(const Part& denoiser) const {
  const auto& c = configs_.qwen;
  const nlohmann::ordered_json config = {
      {"_class_name", denoiser.class_name}, {"attention_head_dim", c.head_width()},
      {"axes_dims_rope", c.axes},           {"causal_condition", c.causal_condition},
      {"context_in_dim", c.text_width},     {"eps", c.norm_eps},
      {"in_channels", c.token_width},       {"mlp_ratio", c.mlp_hidden / c.hidden},
      {"num_attention_heads", c.num_heads}, {"num_layers", c.num_layers},
      {"out_channels", c.token_width},      {"patch_size", 1}};
  return config.dump(2) + "\n";
}

// Each part's output must match the next part's input.
void check_fit(const Qwen21Configs& c) {
  require(c.vae.is_residual() && c.vae.image_channels == 4,
          "a QwenImage21Pipeline needs an AutoencoderKLQwenImage21 of four channels");
  require(c.vae.downscale() == kPixelsOfLatent, "a QwenImage21Pipeline has latents of ",
          kPixelsOfLatent, " pixels, the autoencoder's have ", c.vae.downscale());
  require(c.qwen.token_width == c.vae.latent_channels, "the transformer takes tokens of ",
          c.qwen.token_width, " channels, the autoencoder's latents have ", c.vae.latent_channels);
  require(c.qwen.text_width == c.text.text.hidden, "the transformer takes embedded text of width ",
          c.qwen.text_width, ", the text encoder makes ", c.text.text.hidden);
  require(c.text.vision.pixels_per_token() == 2 * kPixelsOfLatent,
          "a QwenImage21Pipeline's text encoder sees tokens of ", 2 * kPixelsOfLatent,
          " pixels, this one's have ", c.text.vision.pixels_per_token());
}

std::shared_ptr<const Family> open_qwen21(const ModelFiles& files) {
  const Qwen21Configs configs{
      .qwen = read_denoiser(files, "transformer", read_qwen21_config, infer_qwen21_config),
      .text = read_qwen3_vl_config(read_json_object(files.config_of("text_encoder"))),
      .vae = read_autoencoder(files, read_rgba_vae_config),
      .processor = files.folder / "processor"};
  check_fit(configs);
  return make_qwen21_family(configs, read_scheduler(files),
                            read_defaults(files, qwen21_defaults()));
}

// The configs' defaults are the published ones. Turbo's grid is not shifted.
std::shared_ptr<const Family> named_qwen21(const std::string& name) {
  auto defaults = qwen21_defaults();
  if (name != "qwen-image-2.1-turbo")
    return make_qwen21_family({},
                              {.use_dynamic_shifting = true,
                               .max_shift = 0.9,
                               .max_image_seq_len = 8192,
                               .shift_terminal = 0.02},
                              defaults);
  defaults.sampling.base_sigmas = {1,       0.978453, 0.95418,  0.926626,
                                   0.89508, 0.845148, 0.704534, 0.414568};
  defaults.steps = int(defaults.sampling.base_sigmas.size());
  return make_qwen21_family({}, {}, defaults);
}

}  // namespace

std::shared_ptr<const Family> make_qwen21_family(const Qwen21Configs& configs,
                                                 const ScheduleConfig& schedule,
                                                 const RequestDefaults& defaults) {
  return std::make_shared<const Qwen21Family>(configs, schedule, defaults);
}

FamilyEntry qwen21_family() {
  return {.pipeline_class = "QwenImage21Pipeline",
          .transformer_class = "QwenImage21Transformer2DModel",
          .folders = {"text_encoder", "processor", "vae", "scheduler", "transformer"},
          .single_file_has = {"txt_in.text_norm.weight"},
          .published = {"qwen-image-2.1", "qwen-image-2.1-turbo"},
          .open = open_qwen21,
          .named = named_qwen21};
}

}  // namespace braid
