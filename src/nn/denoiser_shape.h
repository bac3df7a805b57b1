// The shape of a denoiser and what its blocks cost: what forecasts count with. Parameters and bytes
// are not here: a survey of the weights finds them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

// Numbers a token: those that every tensor parallel rank has, and those that such ranks share.
struct Widths {
  double whole = 0, shared = 0;

  // Of a rank that has so many of all heads.
  double of_heads(std::int64_t mine, std::int64_t all) const {
    return whole + shared * double(mine) / double(all);
  }
};

// Which tokens a block computes on.
enum class Sees { kAll, kImage, kText };

// One kind of block. Attention between the tokens is not in it: it follows from the heads.
struct BlockCost {
  std::string name;        // as in "double blocks"
  std::int64_t count = 0;  // of such blocks
  Sees sees = Sees::kAll;
  double dense_flops = 0;  // of the dense layers that ranks share, a token
  int all_reduces = 0;     // of all tokens' hidden width, among tensor parallel ranks
  Widths live = {};        // at the block's widest place, without its keys and values
  double widest = 0;       // outputs of the widest dense layer, which ranks share
  Widths moved = {};       // read and written, one operation after another
};

// Kinds of blocks follow each other: all of the first kind, then all of the second, ...
struct DenoiserShape {
  std::int64_t hidden = 0, num_heads = 0, num_kv_heads = 0, head_width = 0;
  std::int64_t in_width = 0, out_width = 0;  // of a token of latents, and of its velocity
  std::int64_t beside_width = 0;             // of the channels beside a token of latents
  std::int64_t text_width = 0;               // of a token of the embedded prompt
  std::int64_t pooled_width = 0;             // of the prompt as one vector; 0: there is none
  std::int64_t state_vectors = 0;  // [B 1 hidden] each, that travel beside tokens between parts
  std::int64_t run_multiple = 1;   // tokens of the picture, and of text, are padded to multiples
  std::int64_t residuals = 0;      // [B N hidden] each, that ControlNets make of a picture's tokens
  std::vector<BlockCost> blocks = {};

  std::int64_t padded(std::int64_t tokens) const {
    return (tokens + run_multiple - 1) / run_multiple * run_multiple;
  }
  std::int64_t num_blocks() const {
    std::int64_t sum = 0;
    for (const auto& kind : blocks) sum += kind.count;
    return sum;
  }
};

}  // namespace braid
