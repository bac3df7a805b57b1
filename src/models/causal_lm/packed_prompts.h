// Prompts of a batch as one run of rows, of which no two are the same: what the layers compute on.
//
// A token sees the text before it and never padding. Padding before the text therefore sees
// nothing: its attention is 0, and one row stands for all of it. Padding behind the text sees all
// of the text from its own position: each is a row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

using at::Tensor;

// Of a prompt's tokens those that are no padding: [begin, begin + count), at least one.
struct TextRun {
  std::int64_t begin, count;
};

enum class Pads { kEncoded, kSkipped };

class PackedPrompts {
 public:
  // ids_BL int64. Throws Error unless there is a run of each prompt, within its tokens, and tokens
  // before it are all alike.
  PackedPrompts(const Tensor& ids_BL, std::span<const TextRun> texts, Pads pads);

  // Rows of one prompt, one after the other from `first`.
  struct Prompt {
    std::int64_t first, before, text, behind;

    std::int64_t text_begin() const { return first + before; }
    std::int64_t rows() const { return before + text + behind; }
  };
  const std::vector<Prompt>& prompts() const { return prompts_; }
  const Tensor& ids_1T() const { return ids_1T_; }
  const Tensor& positions_T() const { return positions_T_; }

  // x_1TC -> [B L C]: rows where their tokens were, 0 where none was encoded.
  Tensor unpacked(const Tensor& x_1TC) const;

 private:
  std::int64_t length_;
  std::vector<TextRun> texts_;
  std::vector<Prompt> prompts_;
  Tensor ids_1T_, positions_T_;
};

}  // namespace braid
