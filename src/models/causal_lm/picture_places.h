// The tokens of a prompt with pictures, each of which replaces one token of the text, and where
// they are: multimodal RoPE (Wang et al., Qwen2-VL, 2024).
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "ops/ops.h"

namespace braid {

// A picture's size in tokens.
struct TokenGrid {
  std::int64_t rows, columns;
};

// The ids, with each picture's token repeated to its size, and every token's position. Text after a
// picture continues past its longer side.
struct PicturePlaces {
  std::vector<std::int64_t> ids = {};
  std::vector<std::int64_t> times = {}, rows = {}, columns = {};
  std::vector<std::int64_t> of_pictures = {};  // indices of picture tokens
};

// How many of a head's angles turn with the time, the row and the column: `mrope_section` of a
// language model's config, in `rope_parameters` or, in older files, in `rope_scaling`; by default
// the `published` ones. Throws InputError unless they sum to half of the width of a head.
std::vector<std::int64_t> read_mrope_sections(const JsonObject& text,
                                              std::vector<std::int64_t> published,
                                              std::int64_t head_width);

// `ids` has one `image_token` per picture. Throws InputError if their number differs from the
// number of pictures, and for an id that is not below `vocab_size`.
PicturePlaces places_of(const std::vector<std::int64_t>& ids,
                        const std::vector<TokenGrid>& pictures, std::int64_t image_token,
                        std::int64_t vocab_size);

// Tables for these tokens; `axes` says for each of a head's angles whether it turns with the time,
// 0, the row or the column. Angles are computed in float32 on the host, as transformers does, then
// rounded to the dtype of `made`, on its device.
HalfSplitRope rope_of(const PicturePlaces& places, const std::vector<std::int64_t>& axes,
                      double theta, const at::TensorOptions& made);

}  // namespace braid
