#include "parallel/layout.h"

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

Attend attend_over(const Mesh& mesh, RingForm form) {
  return polled(mesh.world, ulysses(mesh.ulysses, ring(mesh.ring, form)));
}

PredictAll predict_over(const Mesh& mesh, PredictPart part) {
  return split_branches(mesh.cfg,
                        split_tokens(mesh.context, layer_split(mesh.stages, std::move(part))));
}

}  // namespace braid
