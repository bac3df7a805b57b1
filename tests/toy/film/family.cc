#include "family.h"

#include <ATen/ATen.h>

#include "pipeline/families/parts.h"
#include "toy/grid_family.h"

namespace braid::toy {
namespace {

struct FilmConfigs {
  FilmConfig film;
  T5Config t5;
  VaeConfig vae;
};

std::vector<Part> film_parts(const FilmConfigs& c) {
  return {
      toy_text_part(c.t5),
      {.role = Part::Role::kDenoiser,
       .folder = "transformer",
       .label = "the transformer",
       .class_name = "FilmTransformer",
       .num_heads = c.film.num_heads,
       .lists = {"blocks"},
       .names = [](const Checkpoint&) { return Names(); },
       .sharding = [=](SharedModulation modulation) { return film_sharding(c.film, modulation); },
       .make = [=](const Weights& w) { (void)Film(c.film, w); }},
      autoencoder_part(c.vae)};
}

class FilmFamily : public GridFamily {
 public:
  FilmFamily(const FilmConfigs& c, const ScheduleConfig& schedule, const RequestDefaults& defaults)
      : GridFamily({.family = "Toy film",
                    .parts = film_parts(c),
                    .shape = film_shape(c.film),
                    .limits = {.defaults = defaults,
                               .frames = {.most = 9, .step = 2, .per_second = 8},
                               .size_multiple = int(c.vae.downscale())},
                    .schedule = schedule,
                    .vae = c.vae},
                   c.t5),
        c_(c) {}

  std::shared_ptr<const Family> with_blocks(const std::vector<int>& counts) const override {
    auto c = c_;
    if (!counts.empty() && counts[0] > 0) c.film.num_blocks = counts[0];
    return std::make_shared<const FilmFamily>(c, description().schedule,
                                              description().limits.defaults);
  }
  DenoiserPart load_denoiser(const Part&, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override {
    const auto film = std::make_shared<const Film>(c_.film, w, std::move(attend), run);
    return {.predict = [film](const DenoiserInput& in,
                              const Tensor& state) { return film->advance(in, state); },
            .refine = [film](const DenoiserInput& in,
                             const Tensor& text_BTC) { return film->refine(in, text_BTC); },
            .rope_axes = c_.film.rope_axes()};
  }

  // Latents have a time axis: those of a frame are an image.
  std::int64_t num_tokens(PictureSize size) const override {
    return size.frames * GridFamily::num_tokens(size);
  }
  std::vector<std::int64_t> latent_shape(PictureSize size) const override {
    return {shape().in_width, size.frames, rows(size), columns(size)};
  }
  Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const override {
    return tokens_BNC.transpose(1, 2)
        .unflatten(2, {size.frames, rows(size), columns(size)})
        .contiguous();
  }

  DenoiserInput begin(const Condition& condition, PictureSize size, double,
                      const at::TensorOptions& like) const override {
    const auto ids = grid_positions(rows(size), columns(size), like.device());
    std::vector<Tensor> of_frames;
    for (int frame = 0; frame < size.frames; ++frame)
      of_frames.push_back(at::constant_pad_nd(ids, {1, 0}, frame));
    return {.noise = {.x_BLC = {}, .ids_LA = at::cat(of_frames)},
            .text = {.x_BLC = condition.text_BTC, .ids_LA = {}}};
  }
  void set_step(DenoiserInput& in, const Tensor& latents_BNC, float timestep) const override {
    in.noise.x_BLC = latents_BNC;
    in.timestep_B = at::full({latents_BNC.size(0)}, timestep / 1000, at::kFloat);
  }
  Names written_names(const Part& part) const override {
    return part.role == Part::Role::kDenoiser ? Names() : t5_names();
  }

 private:
  FilmConfigs c_;
};

std::shared_ptr<const Family> open_film(const ModelFiles& files) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const FilmConfigs c{.film = read_film_config(config("transformer")),
                      .t5 = read_t5_config(config("text_encoder")),
                      .vae = read_vae_config(config("vae"))};
  check_text_width(c.film.text_width, c.t5);
  return std::make_shared<const FilmFamily>(
      c, read_scheduler(files),
      read_defaults(
          files, {.width = 64, .height = 64, .steps = 3, .frames = 3, .max_sequence_length = 12}));
}

}  // namespace

FamilyEntry film_family() {
  return {.pipeline_class = "FilmPipeline",
          .folders = {"text_encoder", "tokenizer", "vae", "scheduler", "transformer"},
          .single_file_has = {"film_in.weight"},
          .published = {"toy-film-1"},
          .open = open_film,
          .named = [](const std::string&) {
            return std::make_shared<const FilmFamily>(FilmConfigs(), ScheduleConfig(),
                                                      RequestDefaults());
          }};
}

}  // namespace braid::toy
