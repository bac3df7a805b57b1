// Token embeddings. The table has many rows and a prompt few tokens, so the table stays where it is
// stored and only the rows looked up go to the device.
#pragma once

#include "weights/weights.h"

namespace braid {

class TokenTable {
 public:
  // Pulls `weight` [tokens width].
  TokenTable(const Weights& w, std::int64_t tokens, std::int64_t width);

  // ids_BL int64, below `tokens` -> [B L C], with the load's dtype and device.
  Tensor operator()(const Tensor& ids_BL) const;

 private:
  Tensor stored_VC_;  // V tokens, in host memory
  at::TensorOptions made_;
};

}  // namespace braid
