#include "pipeline/families/qwen_image/qwen_image.h"

#include <ATen/ATen.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/qwen25_vl/names.h"
#include "models/qwen_image/model.h"
#include "models/qwen_image/names.h"
#include "pipeline/families/chat_tokens.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/patches.h"
#include "pipeline/families/qwen_image/controlnets.h"
#include "pipeline/families/qwen_image/describe.h"
#include "pipeline/families/qwen_image/text.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr double kTimestepsPerSigma = 1000;  // fixed in the pipeline

// A picture's tokens [N 3]: which of all pictures it is, and rows and columns from its centre.
Tensor centred_positions(PatchGrid grid, std::int64_t item, at::Device device) {
  auto positions = patch_positions(grid, device, item);
  positions.select(1, 1).sub_(double(grid.rows - grid.rows / 2));
  positions.select(1, 2).sub_(double(grid.columns - grid.columns / 2));
  return positions;
}

// The first position behind a picture's rows and columns.
Tensor end_of(const Tensor& ids_LA) { return ids_LA.narrow(1, 1, 2).amax() + 1; }

// Layered's reference.
constexpr std::int64_t kItemTakenApart = -1;

// numpy.linspace(1, 0, steps + 1) without its end: the usual levels, but for their last bits.
std::vector<float> levels_above_zero(int steps) {
  std::vector<float> levels;
  for (int i = 0; i < steps; ++i) levels.push_back(float(i * (-1.0 / steps) + 1.0));
  return levels;
}

class QwenImageFamily : public PatchFamily {
 public:
  QwenImageFamily(const QwenImageConfigs& configs, const ScheduleConfig& schedule,
                  const RequestDefaults& defaults)
      : PatchFamily(describe_qwen_image(configs, schedule, defaults)), configs_(configs) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override;
  DenoiserPart load_denoiser(const Part& part, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override;
  Controls load_controls(const WeightsOf& weights_of, const Attend& attend) const override {
    return load_qwen_image_controlnets(configs_.controlnets, parts(Part::Role::kControl),
                                       weights_of, attend);
  }
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device device,
                                                const WeightsOf& weights_of,
                                                const Warn& warn) const override;
  std::vector<PromptReader> prompt_readers() const override {
    return qwen_image_prompt_readers(configs_);
  }

  // Latents of layers are items before the channels, first that of the whole picture, which
  // unpack() drops; the frames of one item alone are a reference's.
  std::int64_t num_tokens(PictureSize size) const override {
    return size.frames * PatchFamily::num_tokens(size);
  }
  std::vector<std::int64_t> latent_shape(PictureSize size) const override;
  Tensor pack(const Tensor& latents) const override;
  Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const override;
  Tokens reference(const Tensor& latents_1ZHW, int number) const override;

  Schedule schedule(int steps, PictureSize size, StartsFrom start) const override;
  double mu(PictureSize size, int steps) const override;

  DenoiserInput begin(const Condition& condition, PictureSize size, double guidance,
                      const at::TensorOptions& like) const override;
  void arrange(DenoiserInput& in) const override;
  ControlInput control(const DenoiserInput& in, int net, std::optional<int> mode,
                       double guidance) const override;
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override;

  Names written_names(const Part& part) const override;
  Names single_file_names() const override { return qwen_image_names_of_diffusers(); }
  std::string config_text(const Part& denoiser) const override;

 private:
  bool is_layered() const { return configs_.kind == QwenImageKind::kLayered; }

  QwenImageConfigs configs_;
};

std::shared_ptr<const Family> QwenImageFamily::with_blocks(const std::vector<int>& counts) const {
  auto configs = configs_;
  check_kinds(*this, counts);
  if (!counts.empty() && counts[0] > 0) configs.qwen.num_layers = counts[0];
  return make_qwen_image_family(configs, description().schedule, description().limits.defaults);
}

DenoiserPart QwenImageFamily::load_denoiser(const Part&, const Weights& w, Attend attend,
                                            std::optional<BlockRange> run) const {
  return part_of(std::make_shared<const QwenImage>(configs_.qwen, w, std::move(attend), run));
}

std::unique_ptr<const TextEncoders> QwenImageFamily::load_text(const fs::path& folder,
                                                               at::Device device,
                                                               const WeightsOf& weights_of,
                                                               const Warn&) const {
  const auto w = weights_of(*text_parts().front());
  if (reads_pictures(configs_.kind))
    return std::make_unique<const QwenImageEditText>(configs_, folder, device,
                                                     load_paged<Qwen25Vl>(configs_.text, w));
  return std::make_unique<const QwenImageText>(
      folder / "tokenizer", device,
      Paged<CausalLm>{.page = w.page(), .network = CausalLm(configs_.text.text, {-1}, w)});
}

Names QwenImageFamily::written_names(const Part& part) const {
  if (part.role == Part::Role::kDenoiser) return qwen_image_names_of_diffusers();
  return reads_pictures(configs_.kind) ? published_qwen25_vl_names() : Names{.prefix = "model."};
}

std::vector<std::int64_t> QwenImageFamily::latent_shape(PictureSize size) const {
  auto shape = PatchFamily::latent_shape(size);
  if (size.frames > 1) shape.insert(shape.begin(), size.frames);
  return shape;
}

Tensor QwenImageFamily::pack(const Tensor& latents) const {
  constexpr std::int64_t kDimsOfItems = 5;  // [B T Z H W]
  if (latents.dim() != kDimsOfItems) return PatchFamily::pack(latents);
  const auto tokens = PatchFamily::pack(latents.flatten(0, 1));
  return tokens.unflatten(0, {latents.size(0), latents.size(1)}).flatten(1, 2);
}

Tensor QwenImageFamily::unpack(const Tensor& tokens_BNC, PictureSize size) const {
  if (size.frames == 1) return PatchFamily::unpack(tokens_BNC, size);
  const auto batch = tokens_BNC.size(0);
  const auto of_items = tokens_BNC.unflatten(1, {size.frames, -1}).flatten(0, 1);
  const auto items = PatchFamily::unpack(of_items, size).unflatten(0, {batch, size.frames});
  const auto dropped = description().limits.frames.unreturned();
  return items.narrow(1, dropped, size.frames - dropped).transpose(1, 2).contiguous();
}

// Layered's shift grows with the root of the area.
Schedule QwenImageFamily::schedule(int steps, PictureSize size, StartsFrom start) const {
  if (!is_layered()) return PatchFamily::schedule(steps, size, start);
  return make_schedule(description().schedule, {.steps = steps,
                                                .image_tokens = num_tokens(size),
                                                .mu = mu(size, steps),
                                                .levels = levels_above_zero(steps)});
}

double QwenImageFamily::mu(PictureSize size, int steps) const {
  constexpr double kTokensOfShiftOne = 256;
  if (!is_layered()) return PatchFamily::mu(size, steps);
  return std::sqrt(double(PatchFamily::num_tokens(size)) / kTokensOfShiftOne);
}

// The drawn picture is item 0, with layers behind it.
Tokens QwenImageFamily::reference(const Tensor& latents_1ZHW, int number) const {
  auto tokens = PatchFamily::reference(latents_1ZHW, number);
  const PatchGrid grid{.rows = latents_1ZHW.size(2) / 2, .columns = latents_1ZHW.size(3) / 2};
  const auto item = is_layered() ? kItemTakenApart : number + 1;
  tokens.ids_LA = centred_positions(grid, item, latents_1ZHW.device());
  return tokens;
}

// Until arrange(), text begins at the origin.
DenoiserInput QwenImageFamily::begin(const Condition& condition, PictureSize size, double,
                                     const at::TensorOptions& like) const {
  const auto places = at::arange(condition.text_BTC.size(1), like.dtype(at::kFloat));
  std::vector<Tensor> items;
  for (int item = 0; item < size.frames; ++item)
    items.push_back(centred_positions(grid(size), item, like.device()));
  return {.noise = {.x_BLC = {}, .ids_LA = at::cat(items)},
          .text = {.x_BLC = condition.text_BTC,
                   .ids_LA = places.unsqueeze(1).expand({-1, 3}).contiguous()}};
}

// Text lies behind the rows and columns of all pictures; Layered's behind its items, too.
void QwenImageFamily::arrange(DenoiserInput& in) const {
  auto end = end_of(in.noise.ids_LA);
  for (const auto& reference : in.references) end = at::maximum(end, end_of(reference.ids_LA));
  if (is_layered()) end = at::maximum(end, in.noise.ids_LA.select(1, 0).amax() + 1);
  in.text.ids_LA = in.text.ids_LA + end;
}

// Nets see no references: text lies behind the noise alone.
ControlInput QwenImageFamily::control(const DenoiserInput& in, int, std::optional<int>,
                                      double) const {
  ControlInput control{.x_BNC = {}, .text = in.text};
  control.text.ids_LA = in.text.ids_LA + end_of(in.noise.ids_LA);
  return control;
}

// The timestep is rounded to the latents' dtype before it becomes sigma, and again after.
void QwenImageFamily::set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const {
  in.noise.x_BLC = latents_BNC;
  in.timestep_B =
      at::full({latents_BNC.size(0)}, timestep, latents_BNC.options()) / kTimestepsPerSigma;
}

std::string QwenImageFamily::config_text(const Part& denoiser) const {
  const auto& c = configs_.qwen;
  const nlohmann::ordered_json config = {{"_class_name", denoiser.class_name},
                                         {"attention_head_dim", c.head_width},
                                         {"axes_dims_rope", c.axes},
                                         {"guidance_embeds", false},
                                         {"in_channels", c.in_channels},
                                         {"joint_attention_dim", c.text_width},
                                         {"num_attention_heads", c.num_heads},
                                         {"num_layers", c.num_layers},
                                         {"out_channels", c.out_channels / 4},
                                         {"patch_size", 2},
                                         {"use_additional_t_cond", is_layered()},
                                         {"use_layer3d_rope", is_layered()},
                                         {"zero_cond_t", c.reference_time == ReferenceTime::kZero}};
  return config.dump(2) + "\n";
}

// Each part's output must match the next part's input.
void check_fit(const QwenImageConfigs& c) {
  require(c.vae.is_wan(), "a ", qwen_image_pipeline(c.kind), " needs an AutoencoderKLQwenImage");
  const bool is_layered = c.kind == QwenImageKind::kLayered;
  require((c.qwen.draws == QwenImageDraws::kLayers) == is_layered, "a ",
          qwen_image_pipeline(c.kind), is_layered ? " draws layers" : " draws no layers",
          ", the transformer ", is_layered ? "does not" : "does");
  const auto channels_of_pictures = is_layered ? 4 : 3;
  require(c.vae.image_channels == channels_of_pictures, "a ", qwen_image_pipeline(c.kind),
          " needs an autoencoder of ", channels_of_pictures, " channels, this one has ",
          c.vae.image_channels);
  const auto token = 2 * c.vae.downscale();
  require(c.kind == QwenImageKind::kPlain || kReferenceMultiple % token == 0, "a ",
          qwen_image_pipeline(c.kind), " has references with sides in multiples of ",
          kReferenceMultiple, " pixels, a token of the autoencoder's latents is ", token, " wide");
  require(c.qwen.text_width == c.text.text.hidden, "the transformer takes embedded text of width ",
          c.qwen.text_width, ", the text encoder makes ", c.text.text.hidden);
  const auto channels = 4 * c.vae.latent_channels;
  require(c.qwen.in_channels == channels && c.qwen.out_channels == channels,
          "the transformer takes tokens of ", c.qwen.in_channels, " and makes ones of ",
          c.qwen.out_channels, " channels, 2 x 2 of the autoencoder's latents have ", channels);
}

std::shared_ptr<const Family> open_qwen_image(const ModelFiles& files, QwenImageKind kind) {
  QwenImageConfigs configs{
      .kind = kind,
      .qwen = read_denoiser(files, "transformer", read_qwen_image_config, infer_qwen_image_config),
      .text = read_qwen25_vl_config(read_json_object(files.config_of("text_encoder"))),
      .vae = read_autoencoder(
          files, kind == QwenImageKind::kLayered ? read_rgba_vae_config : read_vae_config)};
  check_fit(configs);
  configs.controlnets = read_qwen_image_controlnets(files, configs.qwen);
  configs.processor = files.folder / "processor";
  if (reads_pictures(kind)) configs.tokenizer = tokenizer_with_pictures(files.folder);
  return make_qwen_image_family(configs, read_scheduler(files),
                                read_defaults(files, qwen_image_defaults(kind)));
}

// The configs' defaults are the published ones, but for the timestep of Edit-2511's references.
std::shared_ptr<const Family> named_qwen_image(const std::string& name, QwenImageKind kind) {
  QwenImageConfigs configs{.kind = kind};
  if (name == "qwen-image-edit-2511") configs.qwen.reference_time = ReferenceTime::kZero;
  if (kind == QwenImageKind::kLayered) {
    configs.qwen.draws = QwenImageDraws::kLayers;
    configs.vae.image_channels = 4;
  }
  return make_qwen_image_family(configs,
                                {.use_dynamic_shifting = true,
                                 .max_shift = 0.9,
                                 .max_image_seq_len = 8192,
                                 .shift_terminal = 0.02},
                                qwen_image_defaults(kind));
}

std::vector<std::string> published_models(QwenImageKind kind) {
  switch (kind) {
    case QwenImageKind::kPlain:
      return {"qwen-image", "qwen-image-2512"};
    case QwenImageKind::kEdit:
      return {"qwen-image-edit"};
    case QwenImageKind::kEditPlus:
      return {"qwen-image-edit-2509", "qwen-image-edit-2511"};
    case QwenImageKind::kLayered:
      break;
  }
  return {"qwen-image-layered"};
}

}  // namespace

std::shared_ptr<const Family> make_qwen_image_family(const QwenImageConfigs& configs,
                                                     const ScheduleConfig& schedule,
                                                     const RequestDefaults& defaults) {
  return std::make_shared<const QwenImageFamily>(configs, schedule, defaults);
}

FamilyEntry qwen_image_family(QwenImageKind kind) {
  FamilyEntry entry{.pipeline_class = qwen_image_pipeline(kind),
                    .transformer_class = "QwenImageTransformer2DModel",
                    .folders = {"text_encoder", "tokenizer", "vae", "scheduler", "transformer"},
                    .single_file_has = {"transformer_blocks.0.img_mod.1.weight"},
                    .published = published_models(kind),
                    .takes_controlnets = kind == QwenImageKind::kPlain,
                    .open = [=](const ModelFiles& files) { return open_qwen_image(files, kind); },
                    .named = [=](const std::string& name) { return named_qwen_image(name, kind); }};
  if (kind == QwenImageKind::kPlain)
    entry.kin_classes = {"QwenImageImg2ImgPipeline", "QwenImageInpaintPipeline",
                         "QwenImageControlNetPipeline", "QwenImageControlNetInpaintPipeline"};
  else
    entry.folders.push_back("processor");
  if (kind == QwenImageKind::kLayered)
    entry.single_file_has = {"time_text_embed.addition_t_embedding.weight"};
  if (kind == QwenImageKind::kEdit) entry.kin_classes = {"QwenImageEditInpaintPipeline"};
  return entry;
}

}  // namespace braid
