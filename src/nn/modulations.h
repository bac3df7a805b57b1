// What modulates a denoiser's blocks depends on the timestep, the guidance and the pooled prompt
// alone. So it is made once, of all steps of a picture: dense layers of as many rows as there are
// steps, one after the other into consecutive columns.
//
// Shape letters: S steps, E width of the conditioning vector, M columns of all layers together, B
// batch.
#pragma once

#include <vector>

#include "ops/ops.h"

namespace braid {

// The columns of several pictures, while they are made.
class ModulationsMade {
 public:
  // `width` is M.
  ModulationsMade(std::vector<Tensor> conditions_SE, std::int64_t width);

  // The next columns: layer(condition), in a product of its own for every picture, so that bits do
  // not depend on which pictures are made together.
  template <class Layer>
  void add(const Layer& layer) {
    std::vector<Tensor> next;
    for (const auto& condition : conditions_SE_) next.push_back(layer(condition));
    add(next);
  }
  std::vector<Tensor> take() &&;  // [S M] each

 private:
  void add(const std::vector<Tensor>& next);

  std::vector<Tensor> conditions_SE_, made_SM_;
  std::int64_t begin_ = 0;
};

// The columns of a step [B M], taken in the order in which they were made.
class Modulations {
 public:
  explicit Modulations(Tensor all_BM) : all_BM_(std::move(all_BM)) {}
  Tensor take(std::int64_t width);

 private:
  Tensor all_BM_;
  std::int64_t begin_ = 0;
};

}  // namespace braid
