// Wraps a model according to the degrees of a layout.
#pragma once

#include "comm/mesh.h"
#include "parallel/modulations.h"
#include "parallel/reference_kv_cache.h"
#include "parallel/regions.h"
#include "parallel/ring.h"

namespace braid {

// The attention a transformer is given: Ulysses around the ring, with `kept` (if any) between them.
// Since every block calls it, it also polls: a stop, or another rank's failure, ends a step midway.
Attend attend_over(const Mesh& mesh, RingForm form = RingForm::kShift,
                   ReferenceKvCache* kept = nullptr);

// Data parallelism: the pictures, of `count`, that this rank draws; and what its ranks made of
// theirs, one row per picture, put together in order on all of them.
Share pictures_of_rank(const Mesh& mesh, std::int64_t count);
Tensor gather_pictures(const Mesh& mesh, const Tensor& mine);

// Predicts all branches of a step, from whole inputs to whole velocities, on every rank. `part` is
// this rank's part of the model under pipeline parallelism, otherwise all of it; `controls` are its
// ControlNets, if any. Inputs without modulations get theirs.
PredictAll predict_over(const Mesh& mesh, const DenoiserPart& part, const Controls& controls = {});
PredictAll predict_over(const Mesh& mesh, PredictPart part);  // computes its own modulations

// The whole text of each branch that this rank predicts, after the blocks that see only it
// (DenoiserPart::refine); undefined for other branches. Empty if the part refines nothing.
PredictAll refine_over(const Mesh& mesh, const DenoiserPart& part);

}  // namespace braid
