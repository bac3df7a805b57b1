// How a tensor or a matrix of ours comes about: kept until it is wanted, or known not to be.
#pragma once

#include "weights/codes/coded.h"
#include "weights/codes/int8_load.h"
#include "weights/paging/page_source.h"
#include "weights/sources/synthetic.h"

namespace braid {

struct Recipe {
  Quantize form = Quantize::kNone;
  std::shared_ptr<const Coding> coding = {};
  std::int64_t bytes = 0;                        // of files that making it reads
  std::vector<TensorForm> tensors;               // the values, then their scales if they have any
  std::function<std::string()> identity;         // as in PageSource
  std::function<LoadedMatrix(at::Device)> make;  // codes of files are made in host memory
  std::function<Tensor()> in_place =
      {};  // the numbers in the mapped file, where they fit as stored
  std::shared_ptr<const Beside> beside = {};  // of a matrix
};

// What is read of stored tensors: rows, joined, and of these the columns, all if there are none.
struct Excerpt {
  std::vector<Piece> pieces;
  std::vector<Share> columns = {};
};

Recipe recipe_of_numbers(const Excerpt& from, at::ScalarType dtype);
// Of numbers that are rounded to `dtype`, then quantised to `form`.
Recipe recipe_of_quantizing(const Excerpt& from, at::ScalarType dtype, Quantize form);
// Of codes as they are stored, with the scales of their rows.
Recipe recipe_of_codes(const Excerpt& codes, const std::vector<Piece>& scales, Quantize form);
// Of bytes as they are stored, where they can stay so.
std::optional<Recipe> recipe_of_stored(const Excerpt& from);
// The same of e4m3 with scales of rows, or one for all: codes of kFloat8 as they are.
std::optional<Recipe> recipe_of_float8(const Excerpt& from);

// What a rank wants of a tensor that no file has.
struct SyntheticExcerpt {
  const SyntheticValues* values;
  std::string path;
  std::vector<std::int64_t> shape;
  Wanted wanted;
  at::ScalarType dtype;
};
Recipe recipe_of_synthetic(const SyntheticExcerpt& from, Quantize form);

}  // namespace braid
