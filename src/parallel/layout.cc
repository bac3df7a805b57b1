#include "parallel/layout.h"

#include "parallel/controls.h"
#include "parallel/pipeline_parallel.h"
#include "parallel/ulysses.h"

namespace braid {

namespace {

Attend polled(Group world, Attend inner) {
  return [=](const AttentionInput& in) {
    world.poll();
    return inner(in);
  };
}

}  // namespace

Attend attend_over(const Mesh& mesh, RingForm form, ReferenceKvCache* kept) {
  auto inner = ring(mesh.ring, form);
  if (kept) inner = kept->around(std::move(inner));
  return polled(mesh.world, ulysses(mesh.ulysses, std::move(inner)));
}

Share pictures_of_rank(const Mesh& mesh, std::int64_t count) { return share_of(count, mesh.dp); }

Tensor gather_pictures(const Mesh& mesh, const Tensor& mine) { return mesh.dp.all_gather(mine, 0); }

PredictAll predict_over(const Mesh& mesh, const DenoiserPart& part, const Controls& controls) {
  auto staged =
      with_modulations(modulate_over(mesh.pp, part), pipeline_parallel(mesh.pp, part.predict));
  auto followed = with_controls(mesh.pp, with_modulations(controls), std::move(staged));
  return split_cfg(mesh.cfg, split_tokens(mesh.context, std::move(followed), part.text));
}

PredictAll predict_over(const Mesh& mesh, PredictPart part) {
  return predict_over(mesh, DenoiserPart{.predict = std::move(part)});
}

PredictAll refine_over(const Mesh& mesh, const DenoiserPart& part) {
  if (!part.refine) return {};
  auto whole = pipeline_parallel(mesh.pp, part.refine);
  if (part.text != TextTokens::kCross) whole = split_tokens(mesh.context, std::move(whole));
  return own_branches(mesh.cfg, std::move(whole));
}

}  // namespace braid
