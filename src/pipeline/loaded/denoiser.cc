#include "pipeline/loaded/denoiser.h"

#include "parallel/layout.h"

namespace braid {
namespace {

std::string why_no_graph(const Loading& loading) {
  const auto& options = loading.asked();
  auto reason = why_not_recorded(options.graphs, options.memory, loading.device().is_cpu());
  if (!reason.empty()) return reason;
  reason = why_no_device_graph(loading.device());
  if (!reason.empty()) return reason;
  return loading.mesh.world.stays_on_device() ? "" : "ranks exchange tensors through the host";
}

}  // namespace

StepGraphOptions graph_options(const Loading& loading) {
  using OnFailure = StepGraphOptions::OnFailure;
  const auto& world = loading.mesh.world;
  return {.device = loading.device(),
          .why_not = why_no_graph(loading),
          .epoch = [world] { return world.epoch(); },
          .on_failure = world.size() == 1 ? OnFailure::kGoOn : OnFailure::kThrow,
          .pipeline = &loading.deployment};
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

Denoiser::Denoiser(const Loading& loading, const Part& of, BlockRange range,
                   const Controls& controls) {
  const auto& mesh = loading.mesh;
  const auto& cache = loading.asked().cache;
  auto graphs = graph_options(loading);
  // A graph that was recorded in another epoch of the weights is stale, too.
  graphs.epoch = [of_ranks = graphs.epoch, weights = loading.weights, seen = references_.get()] {
    return of_ranks() + weights->epoch() + seen->changes();
  };
  graphs.choice = [seen = references_.get()](const StepInfo& step) { return seen->whose(step); };
  DenoiserPart part, alone;
  if (cache.mode != CacheMode::kOff) {
    cache_ = std::make_unique<StepCache>(cache, mesh);
    part_graphs_.emplace(graphs);
    graphs.why_not = "its parts are recorded";
    auto parts = load_in_parts(loading, of, range, part);
    alone = part;
    alone.predict = picture_by_picture(one_after_another(parts));
    part.predict = cache_->over(part_graphs_->over(std::move(parts)));
  } else {
    part = alone = load_blocks(loading, of, range);
  }
  references_->set_model(predict_over(mesh, alone), mesh.cfg.size());
  modulate_ = modulate_over(mesh.pp, part, [world = mesh.world] { world.poll(); });
  refine_ = refine_over(mesh, part);
  rope_axes_ = part.rope_axes;
  steps_ = std::make_unique<StepGraph>(graphs, predict_over(mesh, part, controls));
}

DenoiserPart Denoiser::load_blocks(const Loading& loading, const Part& part,
                                   const BlockRange& range) {
  const auto& interposed = loading.interposed;
  const auto w = loading.weights->of(part, loading.options, interposed.shardings);
  return references_->attending([&](ReferenceKvCache* kept) {
    auto attend = attend_over(loading.mesh, loading.asked().layout.ring_form, kept);
    if (interposed.attend) attend = interposed.attend(std::move(attend));
    auto blocks = with_pages(loading.family().load_denoiser(part, w, std::move(attend), range),
                             w.page(), loading.offloaded);
    blocks.text = loading.family().shape().text;
    return interposed.part ? interposed.part(std::move(blocks)) : blocks;
  });
}

// This rank's blocks in the four parts that a cache sits between; `whole` receives their
// modulations.
CachedParts Denoiser::load_in_parts(const Loading& loading, const Part& part,
                                    const BlockRange& here, DenoiserPart& whole) {
  const auto end = here.begin + here.count, all = loading.family().shape().num_blocks();
  const auto loaded = [&](const BlockRange& range) {
    return joined_to(whole, load_blocks(loading, part, range));
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

void Denoiser::end_pictures() const {
  if (cache_) cache_->forget_pictures();
  if (part_graphs_) part_graphs_->end_pictures();
}

void Denoiser::forget_graphs() const {
  steps_->forget();
  if (part_graphs_) part_graphs_->forget();
}

std::vector<Tensor> Denoiser::predict(const std::vector<DenoiserInput>& branches) const {
  return (*steps_)(branches);
}

}  // namespace braid
