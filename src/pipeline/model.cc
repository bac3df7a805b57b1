#include "pipeline/model.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include "base/cpu.h"
#include "base/error.h"
#include "parallel/layout.h"
#include "parallel/map_shared.h"
#include "pipeline/devices.h"
#include "pipeline/planner/tensors.h"
#include "pipeline/text_stream.h"

namespace braid {
namespace {

// Broadcast, as ranks on different kinds of devices would choose differently.
at::ScalarType dtype_of_first(const Mesh& mesh, at::ScalarType mine) {
  mesh.world.await();  // until each rank has read its configuration
  const auto chosen = mesh.world.broadcast(at::full({1}, std::int64_t(mine), at::kLong), 0);
  return at::ScalarType(chosen.item<std::int64_t>());
}

std::string why_no_graph(const Mesh& mesh, const ModelOptions& options) {
  if (options.graphs == Graphs::kOff) return "graphs are off";
  if (options.device.is_cpu()) return "a CPU records no graphs";
  if (!make_device_graph(options.device)) return "this build records no graphs";
  if (options.memory.offload.transformer != OffloadMode::kNone)
    return "weights are copied during a step";
  return mesh.world.stays_on_device() ? "" : "ranks exchange tensors through the host";
}

}  // namespace

StepGraphOptions graph_options(const Mesh& mesh, const ModelOptions& options) {
  using OnFailure = StepGraphOptions::OnFailure;
  return {.device = options.device,
          .why_not = why_no_graph(mesh, options),
          .epoch = [world = mesh.world] { return world.epoch(); },
          .on_failure = mesh.world.size() == 1 ? OnFailure::kGoOn : OnFailure::kThrow};
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

// Called once all else is loaded: the memory free then is what the blocks may take.
BlockRange blocks_of_rank(const Family& family, const Mesh& mesh, at::Device device,
                          int ranks_on_device) {
  const auto run = blocks_of_rank(mesh, block_parameters(family),
                                  [&] { return free_memory(device, ranks_on_device); });
  return {.begin = run.begin, .count = run.count};
}

DenoiserPart with_pages(DenoiserPart part, Page page, std::shared_ptr<const OffloadedParts> parts) {
  const auto paged = [=](auto function) {
    return [=](const auto&... arguments) {
      const auto in_use = page.use();
      auto made = function(arguments...);
      parts->check_order();
      return made;
    };
  };
  part.predict = paged(part.predict);
  if (part.condition) part.condition = paged(part.condition);
  if (part.modulate) part.modulate = paged(part.modulate);
  if (part.refine) part.refine = paged(part.refine);
  return part;
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
      recorded_step_(options.memory.recorded_step) {
  LoadOptions load{.dtype = dtype_,
                   .device = device_,
                   .on_bytes = options.on_bytes,
                   .on_read = [this](const BytesRead& read) { bytes_read_ += read; },
                   .coded = Coded::kKept};
  load.second_stream = text_stream(*family_, options);
  if (options.layout.decode == DecodeRanks::kAll) decoders_ = mesh.world;
  if (mesh.world.rank() < decoders_.size()) load_decoder(files, load);
  load_text(files, load, options);
  load_controls(files, load, options);
  load_denoiser(files, load, options);
  predict_ = [steps = steps_, cache = cache_](const std::vector<DenoiserInput>& inputs) {
    if (cache) cache->begin_step();
    return (*steps)(inputs);
  };
}

Weights Model::weights_of(const ModelFiles& files, const Part& part, const LoadOptions& load) {
  const Sharing sharing{.ranks = load.tensor_parallel.size(), .modulation = modulation_};
  auto source = source_of_part(*family_, part, &files, adapted_);
  if (source.beside) beside_.push_back(source.beside);
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

void Model::load_controls(const ModelFiles& files, LoadOptions load, const ModelOptions& options) {
  load.tensor_parallel = mesh_.tp;
  load.quantize = options.memory.quantize;
  const auto weights = [&](const Part& part) {
    load.paging = offloaded_->control();
    return weights_of(files, part, load);
  };
  controls_ = family_->load_controls(weights, attend_over(mesh_, options.layout.ring_form));
}

void Model::load_denoiser(const ModelFiles& files, LoadOptions load, const ModelOptions& options) {
  load.tensor_parallel = mesh_.tp;
  load.quantize = options.memory.quantize;
  load.keep_dense = options.memory.keep_dense;
  load.paging = offloaded_->transformer();
  const auto here = blocks_of_rank(*family_, mesh_, device_, options.ranks_on_device);
  auto graphs = graph_options(mesh_, options);
  graphs.epoch = [of_ranks = graphs.epoch, adapted = switches_, seen = references_] {
    return of_ranks() + *adapted + seen->changes();
  };
  DenoiserPart part, alone;
  if (options.cache.mode != CacheMode::kOff) {
    cache_ = std::make_shared<StepCache>(options.cache, mesh_);
    part_graphs_.emplace(graphs);
    graphs.why_not = "its parts are recorded";
    auto parts = load_in_parts(files, load, here, options.layout.ring_form, part);
    alone = part;
    alone.predict = one_after_another(parts);
    part.predict = cache_->over(part_graphs_->over(std::move(parts)));
  } else {
    part = alone = load_blocks(files, load, here, options.layout.ring_form);
  }
  offloaded_->finish();
  references_->set_model(predict_over(mesh_, alone), mesh_.cfg.size());
  modulate_ = modulate_over(mesh_.stages, part, [world = mesh_.world] { world.poll(); });
  refine_ = refine_over(mesh_, part);
  steps_ = std::make_shared<StepGraph>(graphs, predict_over(mesh_, part, controls_));
}

DenoiserPart Model::load_blocks(const ModelFiles& files, const LoadOptions& load, BlockRange range,
                                RingForm form) {
  const auto w = weights_of(files, family_->part(Part::Role::kDenoiser), load);
  return references_->attending([&](KeptKeys* kept) {
    return with_pages(family_->load_denoiser(w, attend_over(mesh_, form, kept), range), w.page(),
                      offloaded_);
  });
}

// This rank's blocks in the four parts that a cache sits between; `whole` receives their
// modulations.
CachedParts Model::load_in_parts(const ModelFiles& files, const LoadOptions& load, BlockRange here,
                                 RingForm form, DenoiserPart& whole) {
  const auto end = here.begin + here.count, all = family_->shape().num_blocks();
  const auto loaded = [&](const BlockRange& range) {
    return joined_to(whole, load_blocks(files, load, range, form));
  };
  CachedParts parts;
  auto begin = here.begin;
  if (begin == 0) {
    parts.input = loaded({.begin = 0, .count = 0});
    parts.first = loaded({.begin = 0, .count = 1, .ends = Ends::kLeftOut});
    ++begin;
  }
  parts.middle = loaded({.begin = begin, .count = end - begin, .ends = Ends::kLeftOut});
  if (end == all) parts.output = loaded({.begin = all, .count = 0});
  return parts;
}

void Model::adapt(const std::vector<AppliedAdapter>& adapters) {
  if (adapters == adapted_.adapters) return;
  require(adapted_.mode == AdapterMode::kBeside, "a request can bring its own adapters only ",
          "where adapters stay beside the weights, but here they are fused");
  try {
    for (const auto& part : beside_) part->switch_to(adapters);
  } catch (...) {
    for (const auto& part : beside_) part->apply(adapted_.adapters);
    throw;
  }
  adapted_.adapters = adapters;
  ++*switches_;
}

Condition Model::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  const auto nothing = at::empty({0}, at::TensorOptions(dtype_).device(device_));
  const auto mine = text_ ? text_->encode(prompt, max_sequence_length, warn)
                          : Condition{.text_BTC = nothing, .pooled_BC = nothing};
  mesh_.world.await();
  Condition all{.text_BTC = mesh_.world.broadcast(mine.text_BTC, 0), .pooled_BC = {}};
  if (family_->shape().pooled_width > 0) all.pooled_BC = mesh_.world.broadcast(mine.pooled_BC, 0);
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
  steps_->forget();
  if (part_graphs_) part_graphs_->forget();
}

void Model::decode(const Tensor& tokens_BNC, PictureSize size, Tiles tiles,
                   const std::function<void(const Tensor&)>& on_picture) const {
  if (recorded_step_ == RecordedStep::kDropped) forget_graphs();
  if (!vae_) return;
  const auto in_use = vae_->page.use();
  const auto& vae = vae_->network;
  const auto latents = vae.to_decoder(family_->unpack(tokens_BNC.to(dtype_), size));
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
  return (*colors_)(vae.to_decoder(family_->unpack(tokens, size)));
}

}  // namespace braid
