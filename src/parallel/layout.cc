#include "parallel/layout.h"

#include "parallel/ulysses.h"

namespace braid {

Attend attend_over(const Mesh& mesh, RingForm form) {
  return ulysses(mesh.ulysses, ring(mesh.ring, form));
}

PredictAll predict_over(const Mesh& mesh, PredictPart part) {
  return split_branches(mesh.cfg,
                        split_tokens(mesh.context, layer_split(mesh.stages, std::move(part))));
}

}  // namespace braid
