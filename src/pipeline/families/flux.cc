#include "pipeline/families/flux.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "base/cpu.h"
#include "base/error.h"
#include "models/flux/names.h"
#include "parallel/map_shared.h"
#include "pipeline/devices.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

ScheduleConfig read_scheduler(const ModelFiles& files) {
  const auto path = files.folder / "scheduler" / "scheduler_config.json";
  return read_schedule_config(read_json(path), path.string());
}

Paged<Vae> load_vae(const ModelFiles& files, LoadOptions load, const Paging& paging) {
  load.paging = paging;
  auto checkpoint = files.open_vae();
  auto names = vae_names(checkpoint);
  const Weights w(std::move(checkpoint), std::move(names), load);
  const auto config = read_vae_config(read_json_object(files.config_of("vae")));
  return {.page = w.page(), .model = Vae(config, w, Vae::Parts::kDecoder)};
}

// Ranks on different kinds of devices would choose differently.
at::ScalarType dtype_of_first(const Mesh& mesh, at::ScalarType mine) {
  const auto chosen = mesh.world.broadcast(at::full({1}, std::int64_t(mine), at::kLong), 0);
  return at::ScalarType(chosen.item<std::int64_t>());
}

std::string why_no_graph(const Mesh& mesh, const FamilyOptions& options) {
  if (options.graphs == Graphs::kOff) return "graphs are off";
  if (options.device.is_cpu()) return "a CPU records no graphs";
  if (!make_device_graph(options.device)) return "this build records no graphs";
  if (options.memory.offload.transformer != OffloadMode::kNone)
    return "weights are copied during a step";
  return mesh.world.stays_on_device() ? "" : "ranks exchange tensors through the host";
}

StepGraphOptions graph_options(const Mesh& mesh, const FamilyOptions& options) {
  using OnFailure = StepGraphOptions::OnFailure;
  return {.device = options.device,
          .why_not = why_no_graph(mesh, options),
          .on_failure = mesh.world.size() == 1 ? OnFailure::kGoOn : OnFailure::kThrow};
}

}  // namespace

FluxConfig read_transformer_config(const ModelFiles& files, const Checkpoint& checkpoint) {
  const auto path = files.config_of("transformer");
  const bool has_config = files.single_file.empty() || fs::exists(path);
  return has_config ? read_flux_config(read_json_object(path)) : infer_flux_config(checkpoint);
}

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
  return stored != at::kHalf && read_cpu().is_fast_in_bfloat16() ? at::kBFloat16 : at::kFloat;
}

FluxFamily::FluxFamily(const ModelFiles& files, const Mesh& mesh, const FamilyOptions& options)
    : FluxFamily(files, files.open_transformer(), mesh, options) {}

FluxFamily::FluxFamily(const ModelFiles& files, Checkpoint transformer, const Mesh& mesh,
                       const FamilyOptions& options)
    : mesh_(mesh),
      offloaded_(std::make_shared<OffloadedParts>(options.memory.offload, options.device)),
      dtype_(
          dtype_of_first(mesh, choose_dtype(options.dtype, transformer.dtype(), options.device))),
      device_(options.device),
      flux_config_(read_transformer_config(files, transformer)),
      vae_config_(read_vae_config(read_json_object(files.config_of("vae")))),
      schedule_config_(read_scheduler(files)),
      defaults_(read_defaults(files, flux_config_.guidance_embeds)) {
  check_fit(files);
  LoadOptions load{.dtype = dtype_,
                   .device = device_,
                   .on_bytes = options.on_bytes,
                   .on_read = [this](const BytesRead& read) { bytes_read_ += read; }};
  if (options.decode == SharedDecode::kYes) decoders_ = mesh.world;
  if (mesh.world.rank() < decoders_.size()) vae_.emplace(load_vae(files, load, offloaded_->vae()));
  load_text(files, load, options);
  load.tensor_parallel = mesh.tp;
  load.quantize = options.memory.quantize;
  load.keep_dense = options.memory.keep_dense;
  load.paging = offloaded_->transformer();
  auto names = flux_names(transformer);
  const Weights w(std::move(transformer), std::move(names), load,
                  flux_sharding(flux_config_, mesh.tp.size(), options.modulation));
  const auto flux = std::make_shared<const Flux>(
      flux_config_, w, attend_over(mesh, options.ring_form),
      run_of_rank(flux_config_, mesh, device_, options.ranks_on_device));
  offloaded_->finish();
  const auto part = [flux, page = w.page(), parts = offloaded_](const DenoiserInput& in,
                                                                const Tensor& state) {
    const auto in_use = page.use();
    const auto made = flux->advance(in, state);
    parts->check_order();
    return made;
  };
  steps_ = std::make_shared<StepGraph>(graph_options(mesh, options), predict_over(mesh, part));
  predict_ = [steps = steps_](const std::vector<DenoiserInput>& inputs) {
    return (*steps)(inputs);
  };
}

// Called when all else is loaded: what is free then is what the blocks may take.
FluxRun run_of_rank(const FluxConfig& config, const Mesh& mesh, at::Device device,
                    int ranks_on_device) {
  const auto run = blocks_of_rank(mesh, block_sizes(config),
                                  [&] { return free_memory(device, ranks_on_device); });
  return {.begin = run.begin, .count = run.count};
}

// Tensor parallel ranks lie next to each other: the first rank's come first.
void FluxFamily::load_text(const ModelFiles& files, LoadOptions load,
                           const FamilyOptions& options) {
  if (options.text == SharedText::kYes) load.tensor_parallel = mesh_.tp;
  if (mesh_.world.rank() < load.tensor_parallel.size())
    text_.emplace(files, load, options.memory.quantize_text, offloaded_->text());
}

// What one part makes is what the next part takes.
void FluxFamily::check_fit(const ModelFiles& files) const {
  const auto clip = read_clip_config(read_json_object(files.config_of("text_encoder")));
  const auto t5 = read_t5_config(read_json_object(files.config_of("text_encoder_2")));
  const auto& flux = flux_config_;
  require(flux.pooled_width == clip.hidden, "the transformer takes pooled prompts of width ",
          flux.pooled_width, ", the text encoder makes ", clip.hidden);
  require(flux.text_width == t5.hidden, "the transformer takes embedded text of width ",
          flux.text_width, ", the second text encoder makes ", t5.hidden);
  const auto packed = 4 * vae_config_.latent_channels;
  require(flux.in_channels == packed && flux.out_channels == packed, "the transformer takes ",
          flux.in_channels, " and makes ", flux.out_channels, " channels, the autoencoder has ",
          packed, " when packed");
}

ModelLimits FluxFamily::limits() const {
  return {.defaults = defaults_,
          .downscale = vae_config_.downscale(),
          .latent_channels = vae_config_.latent_channels,
          .guidance_embeds = flux_config_.guidance_embeds};
}

Conditioning FluxFamily::encode(const PromptPair& prompt, int max_sequence_length,
                                const std::function<void(const std::string&)>& warn) const {
  const auto nothing = at::empty({0}, at::TensorOptions(dtype_).device(device_));
  const auto mine = text_ ? text_->encode(prompt, max_sequence_length, warn)
                          : Conditioning{.text_1TC = nothing, .pooled_1C = nothing};
  mesh_.world.await();
  return {.text_1TC = mesh_.world.broadcast(mine.text_1TC, 0),
          .pooled_1C = mesh_.world.broadcast(mine.pooled_1C, 0)};
}

// The tiles of all pictures are one list of work, and a picture without tiles is one piece of it.
void FluxFamily::decode_together(const Tensor& latents, Tiles tiles,
                                 const std::function<void(const Tensor&)>& on_picture) const {
  const auto& vae = vae_->model;
  std::vector<Tensor> work;
  for (const auto& one : latents.split(1))
    for (const auto& tile : vae.tiles_of(one, tiles)) work.push_back(tile);
  const auto decoded =
      map_shared(decoders_, work, [&](const Tensor& tile) { return vae.decode_tile(tile); });
  if (decoded.empty()) return;  // the first rank has them
  const auto each = std::int64_t(decoded.size()) / latents.size(0);
  for (std::int64_t i = 0; i < latents.size(0); ++i)
    on_picture(vae.join_tiles(latents.narrow(0, i, 1),
                              {decoded.begin() + i * each, decoded.begin() + (i + 1) * each}));
}

void FluxFamily::decode(const Tensor& tokens_BNC, LatentShape shape, Tiles tiles,
                        const std::function<void(const Tensor&)>& on_picture) const {
  if (!vae_) return;
  const auto in_use = vae_->page.use();
  const auto& vae = vae_->model;
  const auto latents = vae.to_decoder(unpack(tokens_BNC, shape));
  if (decoders_.size() == 1) {  // tile by tile, which needs less memory than a list of tiles
    for (const auto& one : latents.split(1)) on_picture(vae.decode(one, tiles));
    return;
  }
  const bool are_cut = vae.tiles_of(latents.narrow(0, 0, 1), tiles).size() > 1;
  for (const auto& wave : latents.split(are_cut ? 1 : decoders_.size()))
    decode_together(wave, tiles, on_picture);
}

}  // namespace braid
