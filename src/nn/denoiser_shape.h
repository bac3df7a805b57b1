// The shape of a denoiser and the cost of its blocks, for forecasts. Parameters and bytes are not
// here: a survey of the weights finds them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

// Elements per token: those every tensor parallel rank has, and those the ranks share.
struct Widths {
  double whole = 0, shared = 0;

  // The share of a rank that has `mine` of `all` heads.
  double of_heads(std::int64_t mine, std::int64_t all) const {
    return whole + shared * double(mine) / double(all);
  }
};

// Which tokens a block computes on. The image's are those of the noise and of references.
enum class TokenScope { kAll, kImage, kText, kNoise, kReferences };

// How the image sees the tokens of the prompt.
//   kJoint   in one attention with its own. Ranks split both.
//   kCross   by cross-attention, in blocks that compute on image tokens alone. Every rank has the
//            whole text, embedded once (DenoiserPart::refine): no part's state has it.
//   kPrefix  before it, as it sees references: causal by blocks (Tokens::span_L2). They see nothing
//            of the image, so their keys and values are the same in every step and can be kept,
//            unless prefix_has_time.
enum class TextTokens { kJoint, kCross, kPrefix };

// How often. Blocks that see only the text, without modulations, come once, before the first step.
enum class BlockUse { kInEveryStep, kOncePerPicture };

// One kind of block. Excludes attention between tokens, which follows from the heads.
struct BlockCost {
  std::string name;        // as in "double blocks"
  std::int64_t count = 0;  // number of such blocks
  TokenScope scope = TokenScope::kAll;
  BlockUse use = BlockUse::kInEveryStep;
  double dense_flops = 0;     // of the dense layers that ranks share, per token
  double text_flops = 0;      // of those on text seen by cross-attention, per token of it
  int all_reduces = 0;        // of all tokens at the hidden width, among tensor parallel ranks
  Widths peak_elements = {};  // at the block's widest place, excluding its keys and values
  double widest_output = 0;   // outputs of the widest dense layer, shared by ranks
  // What one rank does for one picture on a GPU, in 16 bits, as tests/device count it:
  int kernels = 0;               // started
  int layers = 0;                // of them: dense layers
  Widths traffic_elements = {};  // read and written by what is neither a dense layer nor attention
  Widths inputs = {};            // of dense layers: what is quantized where they multiply codes
  // Inputs of layers that the kernel before them writes as float8 codes, where products are of
  // float8, and how many layers read these.
  Widths coded = {};
  int coded_layers = 0;
  // Sums of tensor parallel ranks that also add to a residual; and of the above, the kernels which
  // they make superfluous, and what these move, elements per token.
  int gated_sums = 0, gated_kernels = 0;
  double gated_elements = 0;
  // What activations move that only layers of numbers apply themselves, and the kernels that these
  // start, or save.
  Widths activated = {};
  int activating_kernels = 0;
  // Columns that its modulating layers return beyond their outputs, once applied to more than the
  // step's timestep.
  std::int64_t more_modulations = 0;
  bool has_sides = false;  // image and text have layers of their own, as in a JointBlock
};

// Kinds of blocks run in order: all of the first kind, then all of the second, ...
struct DenoiserShape {
  std::int64_t hidden = 0, num_heads = 0, num_kv_heads = 0, head_width = 0;
  std::int64_t in_width = 0, out_width = 0;  // of a latent token, and of its velocity
  std::int64_t extra_width = 0;              // extra channels beside a latent token
  std::int64_t text_width = 0;               // of an embedded prompt token
  std::int64_t pooled_width = 0;             // of the pooled prompt; 0: there is none
  std::int64_t state_vectors = 0;       // [B 1 hidden] each, passed between parts beside the tokens
  std::int64_t shared_modulations = 0;  // in a step, for all blocks together
  std::int64_t run_multiple = 1;  // image and text tokens are each padded to a multiple of this
  std::int64_t residuals = 0;     // [B N hidden] each, that ControlNets add to image tokens
  TextTokens text = TextTokens::kJoint;
  bool prefix_has_time = false;  // a kPrefix whose tokens are modulated by the step's timestep
  std::vector<BlockCost> blocks = {};

  std::int64_t padded(std::int64_t tokens) const {
    return (tokens + run_multiple - 1) / run_multiple * run_multiple;
  }
  static std::int64_t num_blocks(const std::vector<BlockCost>& kinds) {
    std::int64_t sum = 0;
    for (const auto& kind : kinds) sum += kind.count;
    return sum;
  }
  std::int64_t num_blocks() const { return num_blocks(blocks); }
  // The kinds of a step, in order.
  std::vector<BlockCost> blocks_of_step() const {
    auto kinds = blocks;
    std::erase_if(kinds, [](const auto& kind) { return kind.use == BlockUse::kOncePerPicture; });
    return kinds;
  }
  bool has_refined_text() const {
    return text == TextTokens::kCross || blocks_of_step().size() < blocks.size();
  }
};

}  // namespace braid
