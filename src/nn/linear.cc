#include "nn/linear.h"

namespace braid {

Linear::Linear(const Weights& w, LinearShape shape)
    : weight_(w.tensor("weight", {shape.out, shape.in})) {
  if (shape.bias == Bias::kYes) bias_ = w.tensor("bias", {shape.out});
}

}  // namespace braid
