#include "family.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/t5/model.h"
#include "pipeline/families/paged.h"
#include "pipeline/families/parts.h"
#include "text/tokenizer.h"

namespace braid::toy {
namespace {

namespace fs = std::filesystem;

constexpr const char *kDenoiser = "transformer", *kSecondDenoiser = "transformer_2";

class ToyText : public TextEncoders {
 public:
  ToyText(const fs::path& folder, Paged<T5> t5)
      : tokenizer_(load_tokenizer(folder / "tokenizer")), t5_(std::move(t5)) {}

  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn&) const override {
    const auto in_use = t5_.page.use();
    const auto ids = tokenizer_->encode(prompt.text, max_sequence_length).ids;
    return {.text_BTC = t5_.network(at::tensor(ids, at::kLong).unsqueeze(0)), .pooled_BC = {}};
  }

 private:
  std::unique_ptr<const Tokenizer> tokenizer_;
  Paged<T5> t5_;
};

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
          .sharding = [=](const Sharing& s) { return toy_sharding(toy, s.ranks, s.modulation); },
          .adapters = {.prefixes = {folder + "."}, .tables = {{}}},
          .make = [=](const Weights& w) { (void)Toy(toy, w); },
          .serves = serves};
}

std::vector<Part> parts_of(const Configs& c) {
  std::vector<Part> parts = {
      {.role = Part::Role::kText,
       .folder = "text_encoder",
       .label = "the text encoder",
       .num_heads = c.t5.num_heads,
       .lists = {"encoder.block"},
       .names = [](const Checkpoint&) { return t5_names(); },
       .sharding = [=](const Sharing& s) { return t5_sharding(c.t5, s.ranks); },
       .make = [=](const Weights& w) { (void)T5(c.t5, w); },
       .live = [](std::int64_t tokens, int) { return 1000 * tokens; }},
  };
  for (const auto& serves : c.serves)
    parts.push_back(denoiser_part(c.toy, parts.size() == 1 ? kDenoiser : kSecondDenoiser, serves));
  parts.push_back(autoencoder_part(c.vae));
  return parts;
}

class ToyFamily : public Family {
 public:
  ToyFamily(const Configs& c, const ScheduleConfig& schedule, const RequestDefaults& defaults)
      : Family({.family = "Toy",
                .parts = parts_of(c),
                .shape = toy_shape(c.toy),
                .limits = {.defaults = defaults, .size_multiple = int(c.vae.downscale())},
                .schedule = schedule,
                .vae = c.vae}),
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
    return {.predict = [toy](const DenoiserInput& in, const Tensor& state) {
      return toy->advance(in, state);
    }};
  }
  std::unique_ptr<const TextEncoders> load_text(const fs::path& folder, at::Device,
                                                const WeightsOf& weights_of,
                                                const Warn&) const override {
    return std::make_unique<const ToyText>(
        folder, load_paged<T5>(c_.t5, weights_of(*text_parts().front())));
  }

  std::int64_t num_tokens(PictureSize size) const override { return rows(size) * columns(size); }
  std::vector<std::int64_t> latent_shape(PictureSize size) const override {
    return {c_.toy.channels, rows(size), columns(size)};
  }
  Tensor pack(const Tensor& latents) const override {
    return latents.flatten(2).transpose(1, 2).contiguous();
  }
  Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const override {
    return tokens_BNC.transpose(1, 2).unflatten(2, {rows(size), columns(size)}).contiguous();
  }

  DenoiserInput begin(const Condition& condition, PictureSize size, double,
                      const at::TensorOptions& like) const override {
    const auto options = like.dtype(at::kFloat);
    const auto at_rows = at::arange(rows(size), options).unsqueeze(1);
    const auto at_columns = at::arange(columns(size), options).unsqueeze(0);
    const auto grid = at::broadcast_tensors({at_rows, at_columns});
    return {.noise = {.x_BLC = {}, .ids_LA = at::stack(grid, -1).flatten(0, 1)},
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
  Names single_file_names() const override { return {}; }
  std::string config_text(const Part&) const override { return "{}\n"; }

 private:
  std::int64_t rows(PictureSize size) const { return size.height / c_.vae.downscale(); }
  std::int64_t columns(PictureSize size) const { return size.width / c_.vae.downscale(); }

  Configs c_;
};

Configs configs_of(const ModelFiles& files) {
  const auto config = [&](const char* part) { return read_json_object(files.config_of(part)); };
  const Configs c{.toy = read_toy_config(config(kDenoiser)),
                  .t5 = read_t5_config(config("text_encoder")),
                  .vae = read_vae_config(config("vae"))};
  require(c.toy.text_width == c.t5.hidden, "the transformer takes embedded text of width ",
          c.toy.text_width, ", the text encoder makes ", c.t5.hidden);
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
