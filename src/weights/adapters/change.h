// What adapters do to one tensor of a model, found by name in their files.
#pragma once

#include "braid/adapter.h"
#include "weights/adapters/delta.h"
#include "weights/sources/request.h"

namespace braid {

// DoRA's magnitudes of inputs: every column of a module gets a length, over all the module's rows.
// An input of a convolution has a column for each place of its window; such a module's columns are
// whole.
struct ColumnLengths {
  Share rows;  // the module's, of our tensor
  Tensor lengths_1C;
  std::int64_t window = 1;  // columns per input
};

// Changes some rows of one of our tensors, in this order:
//   rows = rows + scale * delta, then each normalised and multiplied by its magnitude, if any, or
//   by the length that it had
struct Change {
  Share rows;         // of our tensor
  std::int64_t from;  // the module's row that corresponds to the first
  double scale;
  Delta delta;                           // for a vector it has one column
  Tensor magnitude_N = {};               // for all of the module's rows
  std::optional<ColumnLengths> lengths;  // applied last
  bool replaces = false;                 // the delta replaces what is there
  bool keeps_lengths = false;            // of rows, as peft begins a DoRA

  bool is_product() const;  // only adds a product of low rank
};

// Where the changes of a matrix go; the changes of vectors are always fused.
enum class AdapterPlace {
  kNumbers,             // into the weight, which is widened for it
  kUnmergedFromStored,  // into a weight of numbers, beside one that is kept as it is stored
  kUnmerged,            // beside the weight, whatever it is kept as
};

// All changes one adapter makes to one of our tensors.
struct AdapterChanges {
  std::vector<Change> changes = {};
  std::vector<StoredTensor> stored = {};  // tensors they are computed from

  bool is_empty() const { return changes.empty(); }
  // Whether it consists of low-rank products only, and the sum of their ranks.
  bool are_products() const;
  AdapterPlace place(AdapterMode mode) const;
  // Whether apply() needs all columns or all rows of the tensor.
  bool need_all_columns() const;
  bool need_all_rows() const;
  std::int64_t rank() const;
  std::string identity() const;  // equal strings mean equal changes
};

// Drops prefixes that no module of the file has: there are several for each file.
AdapterNames names_in(const AdapterFile& file, AdapterNames names);

// Searches an adapter's file for changes to the tensors of a part.
struct AdapterSearch {
  const AppliedAdapter& adapter;
  const AdapterNames& names;
  const ShardingTable& shardings;  // parts of fused layers

  // Throws InputError naming the module if it does not fit the tensor.
  AdapterChanges changes_of(const TensorRequest& request) const;
};

// The number of inputs that the file's product has for our layer `layer` with `num_rows` outputs;
// nullopt if it changes none.
std::optional<std::int64_t> inputs_of(const AdapterFile& file, const AdapterNames& names,
                                      const std::string& layer, std::int64_t num_rows);

}  // namespace braid
