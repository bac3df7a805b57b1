// From the degrees of a layout to what a model is wrapped in.
#pragma once

#include "comm/mesh.h"
#include "parallel/kept_keys.h"
#include "parallel/layer_split.h"
#include "parallel/modulations.h"
#include "parallel/regions.h"
#include "parallel/ring.h"

namespace braid {

// What the transformer is given to attend with: Ulysses inside, the ring outside. Every block does,
// so that here a stop, or the failure of another rank, ends a step in its midst.
// Keys are kept in `kept`, where there is one, between the two.
Attend attend_over(const Mesh& mesh, RingForm form = RingForm::kShift, KeptKeys* kept = nullptr);

// All branches of a step, from whole inputs to whole velocities, on every rank. `part` is this
// rank's part of the model under layer split, else all of it; `controls` are its ControlNets, if it
// has any. Inputs that bring no modulations get theirs.
PredictAll predict_over(const Mesh& mesh, const DenoiserPart& part, const Controls& controls = {});
PredictAll predict_over(const Mesh& mesh, PredictPart part);  // that makes its own

}  // namespace braid
