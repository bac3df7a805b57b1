// What a model asks for: a tensor, the share of it that a rank holds, and the forms that suit it.
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <vector>

#include "weights/matrix.h"
#include "weights/paging/page_layout.h"

namespace braid {

// The part of a tensor that a rank holds: runs of rows, and runs of columns, each in order. No
// columns means all of them; rows are always named.
struct Shard {
  std::vector<Share> rows, columns = {};
};

struct TensorRequest {
  std::string layer, name;
  std::vector<std::int64_t> shape;  // of the whole tensor
  at::ScalarType dtype;
  enum class Kind { kNumbers, kMatrix, kTable } kind;  // kTable: stays where it is stored
  PageUse use = PageUse::kRepeated;
  std::string leaf = {};  // the page it is in where layers have pages of their own; empty: in none
  bool is_in_block = false;  // whether it is in a page where blocks have pages of their own
  Shard shard = {};
  Quantize quantize = Quantize::kNone;  // the form asked for
  bool stays_dense = false;             // of a layer whose numbers are not quantized
  StoredCodes stored_codes = StoredCodes::kWidened;

  std::string path() const { return layer.empty() ? name : layer + "." + name; }
  bool is_matrix() const { return kind == Kind::kMatrix; }
  bool is_quantizable() const { return is_matrix() && !stays_dense; }
  Quantize form_of_numbers() const { return is_quantizable() ? quantize : Quantize::kNone; }
};

}  // namespace braid
