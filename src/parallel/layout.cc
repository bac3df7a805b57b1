#include "parallel/layout.h"

#include "parallel/controls.h"
#include "parallel/ulysses.h"

namespace braid {

namespace {

Attend polled(Group world, Attend inner) {
  return [=](const Tensor& q, const Tensor& k, const Tensor& v) {
    world.poll();
    return inner(q, k, v);
  };
}

}  // namespace

Attend attend_over(const Mesh& mesh, RingForm form, KeptKeys* kept) {
  auto inner = ring(mesh.ring, form);
  if (kept) inner = kept->around(std::move(inner));
  return polled(mesh.world, ulysses(mesh.ulysses, std::move(inner)));
}

PredictAll predict_over(const Mesh& mesh, PredictPart part, Follow follow) {
  auto staged = layer_split(mesh.stages, std::move(part));
  auto followed = with_controls(mesh.stages, std::move(follow), std::move(staged));
  return split_branches(mesh.cfg, split_tokens(mesh.context, std::move(followed)));
}

}  // namespace braid
