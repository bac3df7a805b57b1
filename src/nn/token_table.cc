#include "nn/token_table.h"

#include <ATen/ATen.h>

namespace braid {

TokenTable::TokenTable(const Weights& w, std::int64_t tokens, std::int64_t width)
    : stored_VC_(w.table("weight", {tokens, width})),
      made_(at::TensorOptions(w.dtype()).device(w.device())) {}

Tensor TokenTable::operator()(const Tensor& ids_BL) const {
  return at::embedding(stored_VC_, ids_BL.cpu()).to(made_);
}

}  // namespace braid
