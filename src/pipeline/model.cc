#include "pipeline/model.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include "base/cpu.h"
#include "base/error.h"
#include "parallel/map_shared.h"
#include "pipeline/text_stream.h"

namespace braid {
namespace {

// Broadcast, as ranks on different kinds of devices would choose differently.
at::ScalarType dtype_of_first(const Mesh& mesh, at::ScalarType mine) {
  mesh.world.await();  // until each rank has read its configuration
  const auto chosen = mesh.world.broadcast(at::full({1}, std::int64_t(mine), at::kLong), 0);
  return at::ScalarType(chosen.item<std::int64_t>());
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
  return stored != at::kHalf && read_cpu().is_fast_in_bfloat16() ? at::kBFloat16 : at::kFloat;
}

Model::Model(const ModelFiles& files, const Mesh& mesh, const ModelOptions& options)
    : Model(files, files.open("transformer").dtype(), mesh, options) {}

Model::Model(const ModelFiles& files, at::ScalarType stored, const Mesh& mesh,
             const ModelOptions& options)
    : files_(files),
      family_(options.family),
      adapted_{.adapters = options.adapters,
               .mode = options.adapter_mode,
               .warn = options.warn,
               .device = options.device},
      mesh_(mesh),
      offloaded_(std::make_shared<OffloadedParts>(options.memory.offload, options.device)),
      dtype_(dtype_of_first(mesh, choose_dtype(options.dtype, stored, options.device))),
      device_(options.device),
      modulation_(options.layout.modulation),
      recorded_step_(options.memory.recorded_step),
      encoded_(options.encoded_cache) {
  LoadOptions load{.dtype = dtype_,
                   .device = device_,
                   .on_bytes = options.on_bytes,
                   .on_read = [sum = bytes_read_](const BytesRead& read) { *sum += read; },
                   .packed = PackedWeights::kKept};
  load.second_stream = text_stream(*family_, options);
  if (options.layout.decode == DecodeRanks::kAll) decoders_ = mesh.world;
  if (mesh.world.rank() < decoders_.size()) load_decoder(files, load);
  load_text(files, load, options);
  denoisers_ = std::make_unique<const Denoisers>(
      DenoiserSetup{.family = *family_,
                    .mesh = mesh_,
                    .options = options,
                    .load = load,
                    .weights = [&](const Part& part,
                                   const LoadOptions& own) { return weights_of(files, part, own); },
                    .offloaded = offloaded_,
                    .epoch = [switches = switches_] { return *switches; }});
}

Weights Model::weights_of(const ModelFiles& files, const Part& part, const LoadOptions& load) {
  const Sharing sharing{.ranks = load.tensor_parallel.size(), .modulation = modulation_};
  auto source = source_of_part(*family_, part, &files, adapted_);
  if (source.unmerged) unmerged_.push_back(source.unmerged);
  return {std::move(source.tensors), load,
          part.sharding ? part.sharding(sharing) : ShardingTable()};
}

void Model::load_decoder(const ModelFiles& files, LoadOptions load) {
  load.paging = offloaded_->vae();
  const auto w = weights_of(files, family_->part(Part::Role::kDecoder), load);
  vae_.emplace(Paged<Vae>{.page = w.page(),
                          .network = Vae(family_->description().vae, w, Vae::Parts::kDecoder)});
}

// Tensor parallel ranks are neighbours; the first rank's group comes first.
void Model::load_text(const ModelFiles& files, LoadOptions load, const ModelOptions& options) {
  if (options.layout.text == TextRanks::kShared) load.tensor_parallel = mesh_.tp;
  if (mesh_.world.rank() >= load.tensor_parallel.size()) return;
  load.paging = offloaded_->text();  // the encoders share their slots
  const auto weights = [&](const Part& part) {
    auto own = load;
    if (part.is_large) own.quantize = options.memory.quantize_text;
    return weights_of(files, part, own);
  };
  text_ = family_->load_text(files.folder, device_, weights, options.warn);
}

void Model::adapt(const std::vector<AppliedAdapter>& adapters) {
  if (adapters == adapted_.adapters) return;
  require(adapted_.mode == AdapterMode::kUnmerged, "a request can bring its own adapters only ",
          "where adapters stay beside the weights, but here they are fused");
  try {
    for (const auto& part : unmerged_) part->switch_to(adapters);
  } catch (...) {
    for (const auto& part : unmerged_) part->apply(adapted_.adapters);
    throw;
  }
  adapted_.adapters = adapters;
  ++*switches_;
}

Condition Model::encode_now(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  if (text_) return text_->encode(prompt, max_sequence_length, warn);
  const auto nothing = at::empty({0}, at::TensorOptions(dtype_).device(device_));
  return {.text_BTC = nothing, .pooled_BC = nothing};
}

// Only the first rank remembers, and says whether it does: tensor parallel ranks may encode
// together.
Condition Model::encode_or_recall(const Prompt& prompt, int max_sequence_length,
                                  const Warn& warn) const {
  if (!encoded_.is_on()) return encode_now(prompt, max_sequence_length, warn);
  const bool is_first = mesh_.world.rank() == 0;
  auto adapters = adapted_.adapters;
  const auto parts = family_->text_parts();
  const bool changes_text = std::any_of(parts.begin(), parts.end(), [&](const Part* part) {
    return adapts(adapters, *family_, *part);
  });
  if (!changes_text) adapters.clear();
  auto key = is_first ? key_of_prompt(prompt, max_sequence_length, adapters) : EncodedKey();
  const auto* const known = is_first ? encoded_.find(key) : nullptr;
  mesh_.world.await();
  const auto is_known =
      mesh_.world.broadcast(at::full({1}, std::int64_t(known != nullptr), at::kLong), 0);
  if (is_known.item<std::int64_t>() == 0) {
    std::vector<std::string> warnings;
    const auto keep_warning = [&](const std::string& sentence) {
      warnings.push_back(sentence);
      if (warn) warn(sentence);
    };
    const auto made = encode_now(prompt, max_sequence_length, keep_warning);
    if (is_first)
      encoded_.keep(std::move(key), {.tensors = {made.text_BTC, made.pooled_BC, made.places_R},
                                     .warnings = warnings});
    return made;
  }
  const auto nothing = at::empty({0}, at::TensorOptions(dtype_).device(device_));
  if (!known) return {.text_BTC = nothing, .pooled_BC = nothing};
  for (const auto& sentence : known->warnings)
    if (warn) warn(sentence);
  const auto here = [&](const Tensor& x) { return x.defined() ? x.to(device_) : x; };
  return {.text_BTC = here(known->tensors[0]),
          .pooled_BC = here(known->tensors[1]),
          .places_R = here(known->tensors[2])};
}

Condition Model::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  const auto mine = encode_or_recall(prompt, max_sequence_length, warn);
  mesh_.world.await();
  Condition all{.text_BTC = mesh_.world.broadcast(mine.text_BTC, 0), .pooled_BC = {}};
  if (family_->shape().pooled_width > 0) all.pooled_BC = mesh_.world.broadcast(mine.pooled_BC, 0);
  const bool has_places =
      family_->shape().text == TextTokens::kPrefix && !prompt.pictures_13HW.empty();
  if (!has_places) return all;
  const auto no_places = at::empty({0}, at::TensorOptions(at::kLong).device(device_));
  all.places_R =
      mesh_.world.broadcast(mine.places_R.defined() ? mine.places_R.to(device_) : no_places, 0);
  return all;
}

// The tiles of all pictures form one list of work; a picture without tiles is a single item.
void Model::decode_together(const Tensor& latents, Tiles tiles,
                            const std::function<void(const Tensor&)>& on_picture) const {
  const auto& vae = vae_->network;
  std::vector<Tensor> work;
  for (const auto& one : latents.split(1))
    for (const auto& tile : vae.tiles_of(one, tiles)) work.push_back(tile);
  const auto decoded = map_shared(decoders_, work, [&](const Tensor& tile) {
    mesh_.world.poll();
    return vae.decode_tile(tile);
  });
  if (decoded.empty()) return;  // the first rank has them
  const auto each = std::int64_t(decoded.size()) / latents.size(0);
  for (std::int64_t i = 0; i < latents.size(0); ++i)
    on_picture(vae.join_tiles(latents.narrow(0, i, 1),
                              {decoded.begin() + i * each, decoded.begin() + (i + 1) * each}));
}

void Model::forget_graphs() const {
  const c10::DeviceGuard on(device_);
  denoisers_->forget_graphs();
}

namespace {

constexpr std::int64_t kDimsWithTime = 5;  // [B Z T h w]

// The latents of all frames, one after another; a picture's as they are.
Tensor frames_of(const Tensor& latents) {
  if (latents.dim() != kDimsWithTime) return latents;
  return latents.transpose(1, 2).flatten(0, 1);
}

}  // namespace

void Model::decode(const Tensor& tokens_BNC, PictureSize size, Tiles tiles,
                   const std::function<void(const Tensor&)>& on_picture) const {
  if (recorded_step_ == RecordedStep::kDropped) forget_graphs();
  if (!vae_) return;
  const auto in_use = vae_->page.use();
  const auto& vae = vae_->network;
  const auto latents = vae.to_decoder(frames_of(family_->unpack(tokens_BNC.to(dtype_), size)));
  if (decoders_.size() == 1) {  // tile by tile, which needs less memory than a list of tiles
    const auto poll = [&] { mesh_.world.poll(); };
    for (const auto& one : latents.split(1)) on_picture(vae.decode(one, tiles, poll));
    return;
  }
  const bool are_cut = vae.tiles_of(latents.narrow(0, 0, 1), tiles).size() > 1;
  for (const auto& wave : latents.split(are_cut ? 1 : decoders_.size()))
    decode_together(wave, tiles, on_picture);
}

Tensor Model::colors_of(const Tensor& tokens_BNC, PictureSize size) const {
  const auto& vae = vae_->network;
  const auto decode = [&](const Tensor& latents) {
    const auto in_use = vae_->page.use();
    return vae.decode(latents.to(at::TensorOptions(dtype_).device(device_)), Tiles::kNever);
  };
  if (!colors_) colors_.emplace(vae.config().latent_channels, decode);
  const auto tokens = tokens_BNC.to(at::TensorOptions(dtype_).device(device_));
  auto latents = family_->unpack(tokens, size);
  if (latents.dim() == kDimsWithTime) latents = latents.select(2, 0);
  return (*colors_)(vae.to_decoder(latents));
}

}  // namespace braid
