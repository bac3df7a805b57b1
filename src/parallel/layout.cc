#include "parallel/layout.h"

#include "parallel/ulysses.h"

namespace braid {

Attend attend_over(const Mesh& mesh, RingForm form) {
  return ulysses(mesh.ulysses, ring(mesh.ring, form));
}

PredictAll predict_over(const Mesh& mesh, Predict model) {
  return split_branches(mesh.cfg, split_tokens(mesh.context, std::move(model)));
}

}  // namespace braid
