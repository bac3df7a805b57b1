#include "family.h"

#include <ATen/ATen.h>

#include "grid_family.h"
#include "pipeline/families/parts.h"

namespace braid::toy {
namespace {

constexpr const char *kDenoiser = "transformer", *kSecondDenoiser = "transformer_2";

struct Configs {
  ToyConfig toy;
  T5Config t5;
  VaeConfig vae;
  std::vector<Served> serves = {{}};  // by denoiser, one or two of the same shape
};

Part denoiser_part(const ToyConfig& toy, const std::string& folder, const Served& serves) {
  return {.role = Part::Role::kDenoiser,
          .folder = folder,
          .label = folder == kDenoiser ? "the transformer" : "the second transformer",
          .class_name = "ToyTransformer",
          .num_heads = toy.num_kv_heads,
          .lists = {"blocks"},
          .names = [](const Checkpoint&) { return toy_names(); },
          .sharding = [=](SharedModulation modulation) { return toy_sharding(toy, modulation); },
          .adapters = {.prefixes = {folder + "."}, .tables = {toy_names()}},
          .make = [=](const Weights& w) { (void)Toy(toy, w); },
          .serves = serves};
}

std::vector<Part> parts_of(const Configs& c) {
  std::vector<Part> parts = {toy_text_part(c.t5)};
  for (const auto& serves : c.serves)
    parts.push_back(denoiser_part(c.toy, parts.size() == 1 ? kDenoiser : kSecondDenoiser, serves));
  parts.push_back(autoencoder_part(c.vae));
  return parts;
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
  DenoiserPart load_denoiser(const Part&, const Weights& w, Attend attend,
                             std::optional<BlockRange> run) const override {
    const auto toy = std::make_shared<const Toy>(c_.toy, w, std::move(attend), run);
    return {.predict = [toy](const DenoiserInput& in,
                             const Tensor& state) { return toy->advance(in, state); },
            .rope_axes = c_.toy.rope_axes()};
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

Configs configs_of(const ModelFiles& files) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const Configs c{.toy = read_toy_config(config(kDenoiser)),
                  .t5 = read_t5_config(config("text_encoder")),
                  .vae = read_vae_config(config("vae"))};
  check_text_width(c.toy.text_width, c.t5);
  return c;
}

std::shared_ptr<const Family> family_of(const ModelFiles& files, const Configs& c) {
  return std::make_shared<const ToyFamily>(
      c, read_scheduler(files),
      read_defaults(files, {.width = 64, .height = 64, .steps = 3, .max_sequence_length = 12}));
}

std::shared_ptr<const Family> open(const ModelFiles& files) {
  return family_of(files, configs_of(files));
}

// Where the second denoiser takes over, in model_index.json as of other pipelines with two.
std::shared_ptr<const Family> open_experts(const ModelFiles& files) {
  auto c = configs_of(files);
  const auto index = read_json_object(files.folder / "model_index.json");
  const auto boundary = index.number_or("boundary_ratio", 0.875);
  require(boundary > 0 && boundary < 1, "'boundary_ratio' should lie between 0 and 1, it is ",
          boundary);
  c.serves = {{.from = boundary}, {.to = boundary}};
  return family_of(files, c);
}

std::shared_ptr<const Family> open_twins(const ModelFiles& files) {
  auto c = configs_of(files);
  c.serves = {{.branches = Served::BranchSet::kPrompt}, {.branches = Served::BranchSet::kOthers}};
  return family_of(files, c);
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

FamilyEntry toy_experts_family() {
  return {.pipeline_class = "ToyExpertsPipeline",
          .folders = {"text_encoder", "tokenizer", "vae", "scheduler", kDenoiser, kSecondDenoiser},
          .denoisers = {kDenoiser, kSecondDenoiser},
          .single_file_has = {},
          .published = {},
          .open = open_experts,
          .named = {}};
}

FamilyEntry toy_twins_family() {
  auto entry = toy_experts_family();
  entry.pipeline_class = "ToyTwinsPipeline";
  entry.open = open_twins;
  return entry;
}

}  // namespace braid::toy
