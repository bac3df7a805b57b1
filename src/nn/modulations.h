// The blocks' modulations depend only on timestep, guidance and pooled prompt, so they are computed
// once per picture, for all steps. Each dense layer then has one row per step; layer by layer, the
// outputs go into consecutive columns.
//
// Shape letters: S steps, E width of the conditioning vector, M columns of all layers together, B
// batch.
#pragma once

#include <functional>
#include <vector>

#include "ops/ops.h"

namespace braid {

// Collects the columns of several pictures.
class ModulationsMade {
 public:
  // `width` is M.
  ModulationsMade(
      std::vector<Tensor> conditions_SE, std::int64_t width,
      std::function<void()> before_layer = [] {});

  // Appends columns: layer(condition), a separate product per picture, so bits do not depend on
  // which pictures are computed together.
  template <class Layer>
  void add(const Layer& layer) {
    before_layer_();
    std::vector<Tensor> next;
    for (const auto& condition : conditions_SE_) next.push_back(layer(condition));
    add(next);
  }
  std::vector<Tensor> take() &&;  // [S M] each

 private:
  void add(const std::vector<Tensor>& next);

  std::vector<Tensor> conditions_SE_, made_SM_;
  std::function<void()> before_layer_;
  std::int64_t begin_ = 0;
};

// The columns [B M] of one step, taken in the order they were added.
class Modulations {
 public:
  explicit Modulations(Tensor all_BM) : all_BM_(std::move(all_BM)) {}
  Tensor take(std::int64_t width);

 private:
  Tensor all_BM_;
  std::int64_t begin_ = 0;
};

}  // namespace braid
