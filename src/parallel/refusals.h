// Sentences that say why a layout does not suit a model or a request.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "comm/shares.h"

namespace braid {

// "cfg 4 needs as many branches, there are 2"
std::string too_few_branches(int cfg, std::int64_t branches);

// "pipeline parallelism 9 leaves a rank without a block, there are 8"
std::string too_few_blocks(const Shares& stages, std::int64_t blocks);

// "ring x ulysses of 17 leaves a rank without an image token, there are 16"; `kind` is the name of
// a run of tokens (nn/predict.h).
std::string too_few_tokens(const Shares& context, std::string_view kind, std::int64_t tokens);

}  // namespace braid
