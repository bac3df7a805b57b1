// The prompts of a batch packed into one run of distinct rows, on which the layers compute.
//
// A token sees the text before it and never padding. Padding before the text therefore sees
// nothing: its attention is 0, and one row stands for all of it. Padding after the text sees the
// whole text from its own position, so each pad is a row, unless all pads are at one position.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

using at::Tensor;

// The tokens of a prompt that are not padding: [begin, begin + count), at least one.
struct TextRun {
  std::int64_t begin, count;
};

// kAtOne: pads after the text are all at position 1, as transformers 4.57 counted them.
enum class Pads { kEncoded, kAtOne, kSkipped };

class PackedPrompts {
 public:
  // ids_BL int64. Throws Error unless there is one run per prompt, within its tokens, and all
  // tokens before a run are alike.
  PackedPrompts(const Tensor& ids_BL, std::span<const TextRun> texts, Pads pads);

  // The rows of one prompt, consecutive from `first`. The last stands for all tokens behind it.
  struct Prompt {
    std::int64_t first, before, text, behind;

    std::int64_t text_begin() const { return first + before; }
    std::int64_t rows() const { return before + text + behind; }
  };
  const std::vector<Prompt>& prompts() const { return prompts_; }
  const Tensor& ids_1T() const { return ids_1T_; }
  const Tensor& positions_T() const { return positions_T_; }

  // x_1TC -> [B L C]: each row at its token's position, 0 where none was encoded.
  Tensor unpacked(const Tensor& x_1TC) const;

 private:
  std::int64_t length_;
  std::vector<TextRun> texts_;
  std::vector<Prompt> prompts_;
  Tensor ids_1T_, positions_T_;
};

}  // namespace braid
