#include "family.h"

#include <ATen/ATen.h>

#include "grid_family.h"
#include "pipeline/families/parts.h"

namespace braid::toy {
namespace {

struct Configs {
  ToyConfig toy;
  T5Config t5;
  VaeConfig vae;
};

std::vector<Part> parts_of(const Configs& c) {
  return {toy_text_part(c.t5),
          {.role = Part::Role::kDenoiser,
           .folder = "transformer",
           .label = "the transformer",
           .class_name = "ToyTransformer",
           .num_heads = c.toy.num_kv_heads,
           .lists = {"blocks"},
           .names = [](const Checkpoint&) { return toy_names(); },
           .sharding = [=](const Sharing& s) { return toy_sharding(c.toy, s.ranks, s.modulation); },
           .adapters = denoiser_adapter_names({toy_names()}),
           .make = [=](const Weights& w) { (void)Toy(c.toy, w); }},
          autoencoder_part(c.vae)};
}

class ToyFamily : public GridFamily {
 public:
  ToyFamily(const Configs& c, const ScheduleConfig& schedule, const RequestDefaults& defaults)
      : GridFamily({.family = "Toy",
                    .parts = parts_of(c),
                    .shape = toy_shape(c.toy),
                    .limits = {.defaults = defaults, .size_multiple = int(c.vae.downscale())},
                    .schedule = schedule,
                    .vae = c.vae},
                   c.t5),
        c_(c) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override {
    auto c = c_;
    if (!counts.empty() && counts[0] > 0) c.toy.num_blocks = counts[0];
    return std::make_shared<const ToyFamily>(c, description().schedule,
                                             description().limits.defaults);
  }
  DenoiserPart load_denoiser(const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override {
    const auto toy = std::make_shared<const Toy>(c_.toy, w, std::move(attend), run);
    return {.predict = [toy](const DenoiserInput& in, const Tensor& state) {
      return toy->advance(in, state);
    }};
  }

  DenoiserInput begin(const Condition& condition, PictureSize size, double,
                      const at::TensorOptions& like) const override {
    const auto options = like.dtype(at::kFloat);
    return {
        .noise = {.x_BLC = {}, .ids_LA = grid_positions(rows(size), columns(size), like.device())},
        .text = {.x_BLC = condition.text_BTC,
                 .ids_LA = at::zeros({condition.text_BTC.size(1), 2}, options)}};
  }
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override {
    in.noise.x_BLC = latents_BNC;
    in.timestep_B = at::full({latents_BNC.size(0)}, timestep / 1000, at::kFloat);
  }

  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? toy_names() : t5_names();
  }

 private:
  Configs c_;
};

std::shared_ptr<const Family> open(const ModelFiles& files) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const Configs c{.toy = read_toy_config(config("transformer")),
                  .t5 = read_t5_config(config("text_encoder")),
                  .vae = read_vae_config(config("vae"))};
  check_text_width(c.toy.text_width, c.t5);
  return std::make_shared<const ToyFamily>(
      c, read_scheduler(files),
      read_defaults(files, {.width = 64, .height = 64, .steps = 3, .max_sequence_length = 12}));
}

std::shared_ptr<const Family> named(const std::string&) {
  return std::make_shared<const ToyFamily>(Configs(), ScheduleConfig(), RequestDefaults());
}

}  // namespace

FamilyEntry toy_family() {
  return {.pipeline_class = "ToyPipeline",
          .folders = {"text_encoder", "tokenizer", "vae", "scheduler", "transformer"},
          .single_file_has = {"embed.image.weight"},
          .published = {"toy-1"},
          .open = open,
          .named = named};
}

}  // namespace braid::toy
