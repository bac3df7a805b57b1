#include "pipeline/families/zimage/zimage.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/request_error.h"
#include "models/zimage/model.h"
#include "models/zimage/names.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/patches.h"
#include "pipeline/families/zimage/describe.h"
#include "pipeline/families/zimage/text.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

std::int64_t pads_of(std::int64_t tokens) {
  return (kZImageRun - tokens % kZImageRun) % kZImageRun;
}

// Appends pads to the tokens. The transformer never looks at their contents.
Tensor filled_up(const Tensor& x_BLC) {
  return at::constant_pad_nd(x_BLC, {0, 0, 0, pads_of(x_BLC.size(1))});
}

// Marks pads; undefined if there are none.
Tensor is_pad(std::int64_t tokens, at::Device device) {
  const auto pads = pads_of(tokens);
  return pads > 0 ? at::arange(tokens + pads, device) >= tokens : Tensor();
}

class ZImageFamily : public PatchFamily {
 public:
  ZImageFamily(const ZImageConfigs& configs, const ScheduleConfig& schedule,
               const RequestDefaults& defaults)
      : PatchFamily(describe_zimage(configs, schedule, defaults)), configs_(configs) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override;
  DenoiserPart load_denoiser(const Part& part, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override;
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device device,
                                                const WeightsOf& weights_of,
                                                const Warn& warn) const override;
  std::vector<PromptReader> prompt_readers() const override { return zimage_prompt_readers(); }

  Tensor pack(const Tensor& latents_BZHW) const override {
    return channels_last(pack_patches(latents_BZHW), latents_BZHW.size(1));
  }
  Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const override {
    return unpack_patches(channels_first(tokens_BNC, configs_.vae.latent_channels), grid(size));
  }

  // The reference steps latents, not tokens.
  Tensor draw_for_step(Generators generators, PictureSize size,
                       const DenoiserInput&) const override {
    return draw(generators, size, at::kFloat);
  }

  DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                      const at::TensorOptions& like) const override;
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override;
  Schedule schedule(int steps, PictureSize size, StartsFrom) const override;

  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? zimage_names_of_diffusers()
                                              : Names{.prefix = "model."};
  }
  Names single_file_names() const override { return zimage_names_in_one_file(); }
  std::string config_text(const Part& denoiser) const override;

 private:
  // Converts patches of 2 x 2 latents between channels slowest and fastest.
  static Tensor channels_last(const Tensor& tokens_BNC, std::int64_t channels) {
    return tokens_BNC.unflatten(2, {channels, -1}).transpose(2, 3).flatten(2);
  }
  static Tensor channels_first(const Tensor& tokens_BNC, std::int64_t channels) {
    return tokens_BNC.unflatten(2, {-1, channels}).transpose(2, 3).flatten(2);
  }

  ZImageConfigs configs_;
};

std::shared_ptr<const Family> ZImageFamily::with_blocks(const std::vector<int>& counts) const {
  auto configs = configs_;
  auto& c = configs.zimage;
  check_kinds(*this, counts);
  const auto asked = [&](std::size_t kind) { return kind < counts.size() ? counts[kind] : 0; };
  require(asked(0) == 0 || asked(1) == 0 || asked(0) == asked(1),
          "a Z-Image model has as many blocks that refine text as blocks that refine noise, not ",
          asked(1), " and ", asked(0));
  if (const auto refiners = std::max(asked(0), asked(1)); refiners > 0) c.num_refiners = refiners;
  if (asked(2) > 0) c.num_layers = asked(2);
  return std::make_shared<const ZImageFamily>(configs, description().schedule,
                                              description().limits.defaults);
}

// The transformer predicts the negated velocity.
DenoiserPart ZImageFamily::load_denoiser(const Part&, const Weights& w, Attend attend,
                                         std::optional<BlockRange> range) const {
  const auto zimage = std::make_shared<const ZImage>(configs_.zimage, w, std::move(attend), range);
  auto part = part_of(zimage);
  part.refine = [zimage](const DenoiserInput& in, const Tensor& text_BTC) {
    return zimage->refine(in, text_BTC);
  };
  if (!run_of(range, shape().num_blocks()).has_last()) return part;
  part.predict = [predict = part.predict](const DenoiserInput& in, const Tensor& state) {
    return predict(in, state).neg();
  };
  return part;
}

std::unique_ptr<const TextEncoders> ZImageFamily::load_text(const fs::path& folder,
                                                            at::Device device,
                                                            const WeightsOf& weights_of,
                                                            const Warn& warn) const {
  const auto w = weights_of(*text_parts().front());
  return std::make_unique<const ZImageText>(
      folder / "tokenizer", device,
      Paged<CausalLm>{.page = w.page(), .network = CausalLm(configs_.text, kZImageStates, w)},
      warn);
}

// Text lies along the first axis, from 1 on; the picture lies at the position after it and its
// pads. The picture's own pads are at the origin.
DenoiserInput ZImageFamily::begin(const Condition& condition, PictureSize size, double,
                                  const at::TensorOptions& like) const {
  const auto in_float = like.dtype(at::kFloat);
  const auto text = filled_up(condition.text_BTC);
  const auto places = at::arange(1, text.size(1) + 1, in_float).unsqueeze(1);
  const auto image_ids = patch_positions(grid(size), like.device(), text.size(1) + 1);
  const auto num_image = image_ids.size(0);
  return {.noise = {.x_BLC = {},
                    .ids_LA = at::constant_pad_nd(image_ids, {0, 0, 0, pads_of(num_image)}),
                    .is_pad_L = is_pad(num_image, like.device())},
          .text = {.x_BLC = text,
                   .ids_LA = at::constant_pad_nd(places, {0, 2}),
                   .is_pad_L = is_pad(condition.text_BTC.size(1), like.device())}};
}

// Latents are rounded to the transformer's dtype. Its time runs from noise, 0, to the picture, 1.
void ZImageFamily::set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const {
  in.noise.x_BLC = filled_up(latents_BNC.to(in.text.x_BLC.scalar_type()));
  in.timestep_B =
      at::full({latents_BNC.size(0)}, (kZImageTimestepScale - timestep) / kZImageTimestepScale,
               latents_BNC.options().dtype(at::kFloat));
}

// The levels before any shift are torch's, whose last bits differ from NumPy's.
Schedule ZImageFamily::schedule(int steps, PictureSize size, StartsFrom) const {
  require_field("steps", steps >= 1, "a picture needs at least 1 step, not ", steps);
  const auto& config = description().schedule;
  const auto levels = at::linspace(1, 1.0 / steps, steps, at::kFloat);
  const auto* const first = levels.const_data_ptr<float>();
  return make_schedule(config, {.steps = steps,
                                .image_tokens = num_tokens(size),
                                .mu = dynamic_shift(config, num_tokens(size)),
                                .levels = {first, first + steps}});
}

std::string ZImageFamily::config_text(const Part& denoiser) const {
  const auto& c = configs_.zimage;
  const nlohmann::ordered_json config = {{"_class_name", denoiser.class_name},
                                         {"all_f_patch_size", {1}},
                                         {"all_patch_size", {2}},
                                         {"axes_dims", c.axes},
                                         {"axes_lens", c.axis_lengths},
                                         {"cap_feat_dim", c.text_width},
                                         {"dim", c.hidden},
                                         {"in_channels", c.in_channels},
                                         {"n_heads", c.num_heads},
                                         {"n_kv_heads", c.num_heads},
                                         {"n_layers", c.num_layers},
                                         {"n_refiner_layers", c.num_refiners},
                                         {"norm_eps", c.norm_eps},
                                         {"qk_norm", c.qk_norm},
                                         {"rope_theta", c.theta},
                                         {"t_scale", c.time_scale}};
  return config.dump(2) + "\n";
}

// Each part's output must match the next part's input.
void check_fit(const ZImageConfigs& c) {
  require(c.zimage.text_width == c.text.hidden, "the transformer takes embedded text of width ",
          c.zimage.text_width, ", the text encoder makes ", c.text.hidden);
  require(c.zimage.in_channels == c.vae.latent_channels, "the transformer takes latents of ",
          c.zimage.in_channels, " channels, the autoencoder makes ", c.vae.latent_channels);
}

std::shared_ptr<const Family> open(const ModelFiles& files) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const ZImageConfigs configs{
      .zimage = read_denoiser(files, "transformer", read_zimage_config, infer_zimage_config),
      .text = read_causal_lm_config(config("text_encoder")),
      .vae = read_autoencoder(files)};
  check_fit(configs);
  const auto schedule = read_scheduler(files);
  return make_zimage_family(configs, schedule, read_defaults(files, zimage_defaults(schedule)));
}

// The configs' defaults are the published ones.
std::shared_ptr<const Family> named(const std::string& name) {
  const ScheduleConfig schedule{.shift = name == "z-image-turbo" ? 3.0 : 6.0};
  return make_zimage_family({}, schedule, zimage_defaults(schedule));
}

}  // namespace

std::shared_ptr<const Family> make_zimage_family(const ZImageConfigs& configs,
                                                 const ScheduleConfig& schedule,
                                                 const RequestDefaults& defaults) {
  return std::make_shared<const ZImageFamily>(configs, schedule, defaults);
}

FamilyEntry zimage_family() {
  return {.pipeline_class = "ZImagePipeline",
          .kin_classes = {"ZImageImg2ImgPipeline", "ZImageInpaintPipeline"},
          .transformer_class = "ZImageTransformer2DModel",
          .folders = {"text_encoder", "tokenizer", "vae", "scheduler", "transformer"},
          .single_file_has = {"layers.0.adaLN_modulation.0.weight"},
          .published = {"z-image", "z-image-turbo"},
          .publisher = "Tongyi-MAI",
          .open = open,
          .named = named};
}

}  // namespace braid
