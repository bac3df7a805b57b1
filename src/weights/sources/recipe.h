// How to build one of our tensors or matrices: kept until it is needed, or known not to be.
#pragma once

#include "weights/codes/int8_load.h"
#include "weights/codes/packed.h"
#include "weights/paging/page_source.h"
#include "weights/sources/synthetic.h"

namespace braid {

struct Recipe {
  Quantize form = Quantize::kNone;
  std::shared_ptr<const QuantFormat> coding = {};
  std::int64_t bytes = 0;                           // read from files to build it
  std::vector<TensorForm> tensors;                  // the values, then their scales, if any
  std::function<std::string()> identity;            // as in PageSource
  std::function<LoadedMatrix(const Target&)> make;  // a file's codes are built in host memory
  std::function<Tensor()> in_place =
      {};  // the numbers in the mapped file, where they fit as stored
  std::shared_ptr<const LowRank> low_rank = {};  // for a matrix
};

// The part of stored tensors that is read: concatenated rows, and columns of these; none means all.
struct Excerpt {
  std::vector<Piece> pieces;
  std::vector<Share> columns = {};
};

Recipe recipe_of_numbers(const Excerpt& from, at::ScalarType dtype);
// Rounds numbers to `dtype`, then quantises them to `form`.
Recipe recipe_of_quantizing(const Excerpt& from, at::ScalarType dtype, Quantize form);
// Codes as stored, with the scales of their rows.
Recipe recipe_of_codes(const Excerpt& codes, const std::vector<Piece>& scales, Quantize form);
// Bytes as stored, if they can stay so.
std::optional<Recipe> recipe_of_stored(const Excerpt& from);
// The same for e4m3 with one scale per row, or one for all: kFloat8 codes as stored. `whole` has
// all of the tensor's rows: every share is kept as stored, or none is.
std::optional<Recipe> recipe_of_float8(const Excerpt& from, const std::vector<Piece>& whole);

// What a rank needs of a tensor that no file has.
struct SyntheticExcerpt {
  const SyntheticValues* values;
  std::string path;
  std::vector<std::int64_t> shape;
  Wanted wanted;
  at::ScalarType dtype;
};
Recipe recipe_of_synthetic(const SyntheticExcerpt& from, Quantize form);

}  // namespace braid
