// Rotary position tables for tokens with positions along several axes.
#pragma once

#include <string>
#include <vector>

#include "nn/predict.h"

namespace braid {

struct RopeAxes {
  std::vector<std::int64_t> widths;  // of the head, per axis; even; they sum to D
  double theta = 10000;
  at::ScalarType angles = at::kDouble;  // angles are rounded to this before the cosine
  // Frequencies, and their products with positions, are computed in this. Most models define
  // float64; float32 would be off by 1e-4 at far positions.
  at::ScalarType products = at::kDouble;
};

// Checks what a configuration calls `key`: `num_axes` even widths that sum to `head_width`. Throws
// InputError naming `source`.
void check_rope_widths(const std::vector<std::int64_t>& widths, std::size_t num_axes,
                       std::int64_t head_width, const char* key, const std::string& source);

// ids_LA (positions along each axis) -> tables [L D].
Rope rope_table(const Tensor& ids_LA, const RopeAxes& axes);

// Gives each run of tokens of an input its tables, so that no evaluation of it makes them.
void make_ropes(DenoiserInput& in, const RopeAxes& axes);

// The tables of runs of tokens, one behind the other: those that the runs have, or else their
// positions'.
Rope rope_of(const std::vector<const Tokens*>& runs, const RopeAxes& axes);

// The runs in the orders that families join them in.
std::vector<const Tokens*> text_and_images(const DenoiserInput& in);   // text, image, references
std::vector<const Tokens*> images_and_text(const DenoiserInput& in);   // image, references, text
std::vector<const Tokens*> prefix_and_image(const DenoiserInput& in);  // text, references, image

// Tables for a language model's tokens at `positions_L`. Angles are computed in float32 on the
// host, as transformers does, then rounded to the dtype of `made`, on its device.
HalfSplitRope half_split_rope(const Tensor& positions_L, std::int64_t head_width, double theta,
                              const at::TensorOptions& made);

}  // namespace braid
