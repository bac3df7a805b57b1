#include "pipeline/families/flux.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "models/flux/names.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

template <class Config>
Config read_config(const ModelFiles& files, const char* part,
                   Config (*read)(const JsonObject& json)) {
  const auto path = files.config_of(part);
  const auto json = read_json(path);
  return read(JsonObject(json, path.string()));
}

FluxConfig read_transformer_config(const ModelFiles& files, const Checkpoint& checkpoint) {
  const bool has_config = files.single_file.empty() || fs::exists(files.config_of("transformer"));
  return has_config ? read_config(files, "transformer", read_flux_config)
                    : infer_flux_config(checkpoint);
}

ScheduleConfig read_scheduler(const ModelFiles& files) {
  const auto path = files.folder / "scheduler" / "scheduler_config.json";
  return read_schedule_config(read_json(path), path.string());
}

Clip load_clip(const ModelFiles& files, const LoadOptions& load) {
  auto checkpoint = files.open_text_encoder("text_encoder");
  auto names = clip_names(checkpoint);
  return {read_config(files, "text_encoder", read_clip_config),
          Weights(std::move(checkpoint), std::move(names), load)};
}

T5 load_t5(const ModelFiles& files, const LoadOptions& load) {
  return {read_config(files, "text_encoder_2", read_t5_config),
          Weights(files.open_text_encoder("text_encoder_2"), t5_names(), load)};
}

Vae load_vae(const ModelFiles& files, const LoadOptions& load) {
  auto checkpoint = files.open_vae();
  auto names = vae_names(checkpoint);
  return {read_config(files, "vae", read_vae_config),
          Weights(std::move(checkpoint), std::move(names), load), Vae::Parts::kDecoder};
}

// What one part makes is what the next part takes.
void check_fit(const FluxConfig& flux, const Clip& clip, const T5& t5, const Vae& vae) {
  require(flux.pooled_width == clip.config().hidden,
          "the transformer takes pooled prompts of width ", flux.pooled_width,
          ", the text encoder makes ", clip.config().hidden);
  require(flux.text_width == t5.config().hidden, "the transformer takes embedded text of width ",
          flux.text_width, ", the second text encoder makes ", t5.config().hidden);
  const auto packed = 4 * vae.config().latent_channels;
  require(flux.in_channels == packed && flux.out_channels == packed, "the transformer takes ",
          flux.in_channels, " and makes ", flux.out_channels, " channels, the autoencoder has ",
          packed, " when packed");
}

}  // namespace

at::ScalarType choose_dtype(Dtype asked, at::ScalarType stored, at::Device device) {
  switch (asked) {
    case Dtype::kFloat32:
      return at::kFloat;
    case Dtype::kBfloat16:
      return at::kBFloat16;
    case Dtype::kFloat16:
      return at::kHalf;
    case Dtype::kAuto:
      break;
  }
  if (stored == at::kFloat || stored == at::kDouble) return at::kFloat;
  if (!device.is_cpu()) return stored == at::kHalf ? at::kHalf : at::kBFloat16;
  return stored != at::kHalf && read_cpu().has_bfloat16() ? at::kBFloat16 : at::kFloat;
}

FluxFamily::FluxFamily(const ModelFiles& files, FamilyOptions options)
    : FluxFamily(files, files.open_transformer(), [&] {
        options.load.dtype =
            choose_dtype(options.dtype, files.open_transformer().dtype(), options.load.device);
        return options;
      }()) {}

FluxFamily::FluxFamily(const ModelFiles& files, const Checkpoint& transformer,
                       const FamilyOptions& options)
    : dtype_(options.load.dtype),
      device_(options.load.device),
      clip_tokenizer_(load_tokenizer(files.folder / "tokenizer")),
      t5_tokenizer_(load_tokenizer(files.folder / "tokenizer_2")),
      clip_(load_clip(files, options.load)),
      t5_(load_t5(files, options.load)),
      vae_(load_vae(files, options.load)),
      flux_config_(read_transformer_config(files, transformer)),
      schedule_config_(read_scheduler(files)),
      defaults_(read_defaults(files, flux_config_.guidance_embeds)) {
  check_fit(flux_config_, clip_, t5_, vae_);
  const auto flux = std::make_shared<const Flux>(
      flux_config_, Weights(transformer, flux_names(transformer), options.load));
  predict_ = [flux](const DenoiserInput& in) { return (*flux)(in); };
}

ModelLimits FluxFamily::limits() const {
  return {.defaults = defaults_,
          .downscale = vae_.config().downscale(),
          .latent_channels = vae_.config().latent_channels,
          .guidance_embeds = flux_config_.guidance_embeds};
}

Conditioning FluxFamily::encode(const PromptPair& prompt, int max_sequence_length,
                                const std::function<void(const std::string&)>& warn) const {
  const auto ids_of = [&](const Tokenizer& tokenizer, const std::string& text, std::int64_t length,
                          const char* encoder) {
    const auto encoding = tokenizer.encode(text, length);
    if (encoding.truncated && warn)
      warn(text_of("the prompt is longer than the ", length, " tokens that ", encoder,
                   " is given: its end is not seen"));
    return at::tensor(encoding.ids, at::kLong).unsqueeze(0).to(device_);
  };
  const auto clip_ids =
      ids_of(*clip_tokenizer_, prompt.clip, clip_tokenizer_->model_max_length(), "CLIP");
  const auto t5_ids = ids_of(*t5_tokenizer_, prompt.t5, max_sequence_length, "T5");
  return {.text_1TC = t5_(t5_ids), .pooled_1C = clip_(clip_ids).pooled_BC};
}

Tensor FluxFamily::decode(const Tensor& tokens_BNC, LatentShape shape, Tiles tiles) const {
  return vae_.decode(vae_.to_decoder(unpack(tokens_BNC, shape)), tiles);
}

}  // namespace braid
