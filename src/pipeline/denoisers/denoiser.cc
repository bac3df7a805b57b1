#include "pipeline/denoisers/denoiser.h"

#include "parallel/layout.h"

namespace braid {
namespace {

std::string why_no_graph(const Mesh& mesh, const ModelOptions& options) {
  if (options.graphs == Graphs::kOff) return "graphs are off";
  if (options.device.is_cpu()) return "a CPU records no graphs";
  if (!make_device_graph(options.device)) return "this build records no graphs";
  if (options.memory.offload.transformer != OffloadMode::kNone)
    return "weights are copied during a step";
  return mesh.world.stays_on_device() ? "" : "ranks exchange tensors through the host";
}

LoadOptions load_options(const DenoiserSetup& setup) {
  auto load = setup.load;
  load.tensor_parallel = setup.mesh.tp;
  load.quantize = setup.options.memory.quantize;
  load.keep_dense = setup.options.memory.keep_dense;
  load.paging = setup.offloaded->transformer();
  return load;
}

}  // namespace

StepGraphOptions graph_options(const Mesh& mesh, const ModelOptions& options) {
  using OnFailure = StepGraphOptions::OnFailure;
  return {.device = options.device,
          .why_not = why_no_graph(mesh, options),
          .epoch = [world = mesh.world] { return world.epoch(); },
          .on_failure = mesh.world.size() == 1 ? OnFailure::kGoOn : OnFailure::kThrow};
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

Denoiser::Denoiser(const DenoiserSetup& setup, const Part& of, BlockRange run,
                   const Controls& controls) {
  const auto& mesh = setup.mesh;
  const auto& options = setup.options;
  auto graphs = graph_options(mesh, options);
  graphs.epoch = [of_ranks = graphs.epoch, of_weights = setup.epoch, seen = references_.get()] {
    return of_ranks() + of_weights() + seen->changes();
  };
  const auto load = load_options(setup);
  DenoiserPart part, alone;
  if (options.cache.mode != CacheMode::kOff) {
    cache_ = std::make_unique<StepCache>(options.cache, mesh);
    part_graphs_.emplace(graphs);
    graphs.why_not = "its parts are recorded";
    auto parts = load_in_parts(setup, load, of, run, part);
    alone = part;
    alone.predict = one_after_another(parts);
    part.predict = cache_->over(part_graphs_->over(std::move(parts)));
  } else {
    part = alone = load_blocks(setup, load, of, run);
  }
  references_->set_model(predict_over(mesh, alone), mesh.cfg.size());
  modulate_ = modulate_over(mesh.pp, part, [world = mesh.world] { world.poll(); });
  refine_ = refine_over(mesh, part);
  steps_ = std::make_unique<StepGraph>(graphs, predict_over(mesh, part, controls));
}

DenoiserPart Denoiser::load_blocks(const DenoiserSetup& setup, const LoadOptions& load,
                                   const Part& part, const BlockRange& run) {
  const auto w = setup.weights(part, load);
  const auto& interposed = setup.interposed;
  return references_->attending([&](ReferenceKvCache* kept) {
    auto attend = attend_over(setup.mesh, setup.options.layout.ring_form, kept);
    if (interposed.attend) attend = interposed.attend(std::move(attend));
    auto blocks = with_pages(setup.family.load_denoiser(w, std::move(attend), run), w.page(),
                             setup.offloaded);
    blocks.text = setup.family.shape().text;
    return interposed.part ? interposed.part(std::move(blocks)) : blocks;
  });
}

// This rank's blocks in the four parts that a cache sits between; `whole` receives their
// modulations.
CachedParts Denoiser::load_in_parts(const DenoiserSetup& setup, const LoadOptions& load,
                                    const Part& part, const BlockRange& here, DenoiserPart& whole) {
  const auto end = here.begin + here.count, all = setup.family.shape().num_blocks();
  const auto loaded = [&](const BlockRange& range) {
    return joined_to(whole, load_blocks(setup, load, part, range));
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

void Denoiser::forget_graphs() const {
  steps_->forget();
  if (part_graphs_) part_graphs_->forget();
}

std::vector<Tensor> Denoiser::predict(const std::vector<DenoiserInput>& branches) const {
  return (*steps_)(branches);
}

}  // namespace braid
