#include "family.h"

#include <ATen/ATen.h>

#include "image/resize.h"
#include "pipeline/families/parts.h"
#include "toy/grid_family.h"

namespace braid::toy {
namespace {

struct StickerConfigs {
  StickerConfig sticker;
  T5Config t5;
  VaeConfig vae;
};

std::vector<Part> sticker_parts(const StickerConfigs& c) {
  return {toy_text_part(c.t5),
          {.role = Part::Role::kDenoiser,
           .folder = "transformer",
           .label = "the transformer",
           .class_name = "StickerTransformer",
           .num_heads = c.sticker.num_kv_heads,
           .lists = {"blocks"},
           .names = [](const Checkpoint&) { return Names(); },
           .sharding = [=](SharedModulation) { return sticker_sharding(c.sticker); },
           .make = [=](const Weights& w) { (void)Sticker(c.sticker, w); }},
          autoencoder_part(c.vae)};
}

Description describe_sticker(const StickerConfigs& c, const ScheduleConfig& schedule,
                             const RequestDefaults& defaults) {
  const int multiple = int(c.vae.downscale());
  return {.family = "Toy sticker",
          .parts = sticker_parts(c),
          .shape = sticker_shape(c.sticker),
          .limits = {.defaults = defaults,
                     .size_multiple = multiple,
                     .pictures = {.most_references = 2,
                                  .channels = int(c.vae.image_channels),
                                  .fit_reference =
                                      [=](const Pixels& p) {
                                        return cropped(p, 0, 0, p.width / multiple * multiple,
                                                       p.height / multiple * multiple);
                                      }}},
          .schedule = schedule,
          .vae = c.vae};
}

// The spans of tokens from `first` on: each sees up to itself, or all of them each other.
enum class Within { kCausal, kWhole };
Tensor spans_of(std::int64_t first, std::int64_t count, Within within, at::Device device) {
  const auto places = at::arange(first, first + count, at::TensorOptions(at::kInt).device(device));
  const auto last = within == Within::kWhole ? at::full_like(places, first + count - 1) : places;
  return at::stack({places, last}, 1);
}

class StickerFamily : public GridFamily {
 public:
  StickerFamily(const StickerConfigs& c, const ScheduleConfig& schedule,
                const RequestDefaults& defaults)
      : GridFamily(describe_sticker(c, schedule, defaults), c.t5), c_(c) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override {
    auto c = c_;
    if (!counts.empty() && counts[0] > 0) c.sticker.num_blocks = counts[0];
    return std::make_shared<const StickerFamily>(c, description().schedule,
                                                 description().limits.defaults);
  }
  DenoiserPart load_denoiser(const Part&, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override {
    const auto sticker = std::make_shared<const Sticker>(c_.sticker, w, std::move(attend), run);
    return {.predict = [sticker](const DenoiserInput& in,
                                 const Tensor& state) { return sticker->advance(in, state); },
            .rope_axes = c_.sticker.rope_axes()};
  }

  Tokens reference(const Tensor& latents_1CHW, int) const override {
    return {.x_BLC = pack(latents_1CHW),
            .ids_LA = in_grid(latents_1CHW.size(2), latents_1CHW.size(3), latents_1CHW.device())};
  }
  DenoiserInput begin(const Condition& condition, PictureSize size, double,
                      const at::TensorOptions& like) const override {
    const auto text = at::arange(condition.text_BTC.size(1), like.dtype(at::kFloat));
    return {.noise = {.x_BLC = {}, .ids_LA = in_grid(rows(size), columns(size), like.device())},
            .text = {.x_BLC = condition.text_BTC, .ids_LA = at::stack({text, text, text}, 1)}};
  }
  // The references stand behind the first token of the text, each a step further on all axes.
  void arrange(DenoiserInput& in) const override {
    const auto num_text = in.text.ids_LA.size(0);
    const auto device = in.text.ids_LA.device();
    std::int64_t place = 1;
    for (auto& reference : in.references) {
      const auto count = reference.ids_LA.size(0);
      reference.span_L2 = spans_of(place, count, Within::kWhole, device);
      reference.ids_LA = reference.ids_LA + double(place);
      place += count;
    }
    in.text.span_L2 = at::cat({spans_of(0, 1, Within::kCausal, device),
                               spans_of(place, num_text - 1, Within::kCausal, device)});
    in.noise.ids_LA = in.noise.ids_LA + double(num_text);
  }
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override {
    in.noise.x_BLC = latents_BNC;
    in.timestep_B = at::full({latents_BNC.size(0)}, timestep / 1000, at::kFloat);
  }
  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? Names() : t5_names();
  }

 private:
  static Tensor in_grid(std::int64_t rows, std::int64_t columns, at::Device device) {
    return at::constant_pad_nd(grid_positions(rows, columns, device), {1, 0});
  }

  StickerConfigs c_;
};

std::shared_ptr<const Family> open_sticker(const ModelFiles& files) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const StickerConfigs c{.sticker = read_sticker_config(config("transformer")),
                         .t5 = read_t5_config(config("text_encoder")),
                         .vae = read_rgba_vae_config(config("vae"))};
  check_text_width(c.sticker.text_width, c.t5);
  return std::make_shared<const StickerFamily>(
      c, read_scheduler(files),
      read_defaults(files, {.width = 64, .height = 64, .steps = 3, .max_sequence_length = 12}));
}

}  // namespace

FamilyEntry sticker_family() {
  return {.pipeline_class = "StickerPipeline",
          .folders = {"text_encoder", "tokenizer", "vae", "scheduler", "transformer"},
          .single_file_has = {"sticker_in.weight"},
          .published = {"toy-sticker-1"},
          .open = open_sticker,
          .named = [](const std::string&) {
            return std::make_shared<const StickerFamily>(StickerConfigs(), ScheduleConfig(),
                                                         RequestDefaults());
          }};
}

}  // namespace braid::toy
