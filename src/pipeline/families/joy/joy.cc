#include "pipeline/families/joy/joy.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/joy/model.h"
#include "pipeline/families/chat_tokens.h"
#include "pipeline/families/joy/describe.h"
#include "pipeline/families/joy/text.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/patches.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

class JoyFamily : public PatchFamily {
 public:
  JoyFamily(const JoyConfigs& configs, const ScheduleConfig& schedule,
            const RequestDefaults& defaults)
      : PatchFamily(describe_joy(configs, schedule, defaults)), configs_(configs) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override;
  DenoiserPart load_denoiser(const Part& part, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override;
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device device,
                                                const WeightsOf& weights_of,
                                                const Warn& warn) const override;
  std::vector<PromptReader> prompt_readers() const override { return joy_prompt_readers(configs_); }

  Tensor draw_for_step(Generators generators, PictureSize size,
                       const DenoiserInput& in) const override;

  DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                      const at::TensorOptions& like) const override;
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override;

  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? Names{} : Names{.prefix = "model."};
  }
  Names single_file_names() const override { return {}; }
  std::string config_text(const Part& denoiser) const override;

 private:
  JoyConfigs configs_;
};

std::shared_ptr<const Family> JoyFamily::with_blocks(const std::vector<int>& counts) const {
  auto configs = configs_;
  check_kinds(*this, counts);
  if (!counts.empty() && counts[0] > 0) configs.joy.num_layers = counts[0];
  return make_joy_family(configs, description().schedule, description().limits.defaults);
}

DenoiserPart JoyFamily::load_denoiser(const Part&, const Weights& w, Attend attend,
                                      std::optional<BlockRange> run) const {
  const auto joy = std::make_shared<const Joy>(configs_.joy, w, std::move(attend), run);
  return {.predict = [joy](const DenoiserInput& in,
                           const Tensor& state) { return joy->advance(in, state); },
          .rope_axes = configs_.joy.rope_axes()};
}

std::unique_ptr<const TextEncoders> JoyFamily::load_text(const fs::path& folder, at::Device device,
                                                         const WeightsOf& weights_of,
                                                         const Warn&) const {
  const auto w = weights_of(*text_parts().front());
  return std::make_unique<const JoyText>(configs_, folder, device,
                                         load_paged<Qwen3Vl>(configs_.text, w));
}

// The reference steps all its items and puts references back afterwards. Edit's are latents of one
// size, the drawn one last; Edit-Plus's are tokens, the drawn ones first.
Tensor JoyFamily::draw_for_step(Generators generators, PictureSize size,
                                const DenoiserInput& in) const {
  auto tokens = num_tokens(size);
  for (const auto& reference : in.references) tokens += reference.x_BLC.size(1);
  if (configs_.kind == JoyKind::kPlus)
    return draw_noise(generators, {tokens, in.noise.x_BLC.size(2)}, at::kFloat)
        .narrow(1, 0, num_tokens(size));
  auto items = latent_shape(size);
  items.insert(items.begin(), tokens / num_tokens(size));
  return pack(draw_noise(generators, items, at::kFloat).select(1, -1));
}

// Text at the origin is not rotated; otherwise it lies after all rows and columns.
DenoiserInput JoyFamily::begin(const Condition& condition, PictureSize size, double,
                               const at::TensorOptions& like) const {
  const auto patches = grid(size);
  const auto length = condition.text_BTC.size(1);
  const auto in_float = like.dtype(at::kFloat);
  auto places = at::zeros({length, 3}, in_float);
  if (configs_.joy.text_rope == JoyTextRope::kBehindPictures)
    places += (at::arange(length, in_float) + std::max(patches.rows, patches.columns)).unsqueeze(1);
  return {.noise = {.x_BLC = {}, .ids_LA = patch_positions(patches, like.device())},
          .text = {.x_BLC = condition.text_BTC, .ids_LA = places}};
}

void JoyFamily::set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const {
  in.noise.x_BLC = latents_BNC;
  in.timestep_B =
      at::full({latents_BNC.size(0)}, timestep, latents_BNC.options().dtype(at::kFloat));
}

std::string JoyFamily::config_text(const Part& denoiser) const {
  const auto& c = configs_.joy;
  const nlohmann::ordered_json config = {
      {"_class_name", denoiser.class_name},
      {"hidden_size", c.hidden},
      {"in_channels", c.latent_channels},
      {"mlp_width_ratio", ratio_to(c.hidden, c.mlp_hidden)},
      {"num_attention_heads", c.num_heads},
      {"num_layers", c.num_layers},
      {"out_channels", c.out_channels},
      {"patch_size", {1, 2, 2}},
      {"rope_dim_list", c.axes},
      {"rope_type", c.text_rope == JoyTextRope::kNone ? "rope" : "mrope"},
      {"text_dim", c.text_width},
      {"theta", c.theta}};
  return config.dump(2) + "\n";
}

// Each part's output must match the next part's input.
void check_fit(const JoyConfigs& c, const ScheduleConfig& schedule) {
  require(c.vae.is_wan(), "a ", joy_pipeline(c.kind), " needs an AutoencoderKLWan");
  require(c.joy.text_width == c.text.text.hidden, "the transformer takes embedded text of width ",
          c.joy.text_width, ", the text encoder makes ", c.text.text.hidden);
  const auto channels = c.vae.latent_channels;
  require(c.joy.latent_channels == channels && c.joy.out_channels == channels,
          "the transformer takes ", c.joy.latent_channels, " and makes ", c.joy.out_channels,
          " channels, the autoencoder has ", channels);
  constexpr std::int64_t kSizesAreMultiplesOf = 64;
  require(kSizesAreMultiplesOf % (2 * c.vae.downscale()) == 0, "a ", joy_pipeline(c.kind),
          " draws sizes of multiples of ", kSizesAreMultiplesOf, ", the autoencoder's latents are ",
          c.vae.downscale(), " pixels wide");
  require(!schedule.use_dynamic_shifting, "a ", joy_pipeline(c.kind),
          " has one shift for all sizes: 'use_dynamic_shifting' should be false");
}

// The pipelines take what the last layer returns from a hook on it, before features are added.
Qwen3VlConfig read_text_config(const JsonObject& json) {
  auto c = read_qwen3_vl_config(json);
  c.last_layer_is_plain = true;
  return c;
}

std::shared_ptr<const Family> open_joy(const ModelFiles& files, JoyKind kind) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const auto no_config = [&](const Checkpoint& checkpoint) -> JoyConfig {
    throw InputError(
        text_of(checkpoint.source(), " needs a ", files.config_of("transformer").string(),
                " beside it: its shapes alone do not describe a ", joy_pipeline(kind)));
  };
  const auto index = read_json_object(files.folder / "model_index.json");
  const JoyConfigs configs{
      .kind = kind,
      .joy = read_denoiser(files, "transformer", read_joy_config, no_config),
      .text = read_text_config(config("text_encoder")),
      .vae = read_autoencoder(files),
      .max_plain_tokens = int(index.integer_or("text_token_max_length", 2048, 1, 1 << 15)),
      .processor = files.folder / "processor",
      .tokenizer = tokenizer_with_pictures(files.folder)};
  const auto schedule = read_scheduler(files);
  check_fit(configs, schedule);
  return make_joy_family(configs, schedule, read_defaults(files, joy_defaults(kind)));
}

}  // namespace

// The pipelines let the scheduler space the levels.
std::shared_ptr<const Family> make_joy_family(const JoyConfigs& configs,
                                              const ScheduleConfig& schedule,
                                              const RequestDefaults& defaults) {
  auto spaced = schedule;
  spaced.use_flow_sigmas = true;
  return std::make_shared<const JoyFamily>(configs, spaced, defaults);
}

FamilyEntry joy_family(JoyKind kind) {
  const char* const name = kind == JoyKind::kEdit ? "joyai-image-edit" : "joyai-image-edit-plus";
  return {.pipeline_class = joy_pipeline(kind),
          .transformer_class = kind == JoyKind::kEdit ? "JoyImageEditTransformer3DModel"
                                                      : "JoyImageEditPlusTransformer3DModel",
          .folders = {"text_encoder", "tokenizer", "processor", "vae", "scheduler", "transformer"},
          .single_file_has = {"double_blocks.0.img_mod.modulate_table"},
          .published = {name},
          .open = [=](const ModelFiles& files) { return open_joy(files, kind); },
          .named =
              [=](const std::string&) {
                return make_joy_family({.kind = kind}, {.shift = 4}, joy_defaults(kind));
              }};
}

}  // namespace braid
