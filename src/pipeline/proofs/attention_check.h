// Attention between ranks, each call of it against attention over all ranks' keys in float32. What
// a wrong merge changes is small behind a residual stream, and there 16 bits may hide it.
#pragma once

#include <optional>

#include "comm/group.h"
#include "nn/attention.h"

namespace braid {

class AttentionCheck {
 public:
  // Wraps the attention of this rank, which shares the tokens with the others of `context`. The
  // result knows no keys that were kept from another evaluation. Must be outlived by the check.
  Attend around(const Group& context, Attend attend);

  // The largest difference since the last call: its norm over the rank's tokens and heads, relative
  // to theirs. Nothing if there was no attention.
  std::optional<double> take();

 private:
  std::optional<double> largest_;
};

}  // namespace braid
