// What adapters make of one tensor of a model: found by its names in their files, and applied to
// the share of it that a rank holds.
#pragma once

#include "weights/adapters/delta.h"
#include "weights/sources/source.h"

namespace braid {

// Of some rows of a tensor of ours, in the order in which changes are made:
//   rows = rows + scale * delta, then each of unit length times its magnitude if there is one
struct Change {
  Share rows;         // of ours
  std::int64_t from;  // the module's row that the first of these is
  double scale;
  Delta delta;              // of a vector it has one column
  Tensor magnitude_N = {};  // of all of the module's rows
  bool replaces = false;    // the delta stands in place of what is there
};

// All that one adapter does to a tensor of ours.
struct AdapterChanges {
  std::vector<Change> changes = {};
  std::vector<StoredTensor> stored = {};  // what they are made of

  std::string identity() const;  // in words: the same words, the same changes
};

// Without the prefixes that no module of the file has: there are several for each file.
AdapterNames names_in(const AdapterFile& file, AdapterNames names);

// How an adapter's file is searched for the tensors of a part.
struct AdapterSearch {
  const AppliedAdapter& adapter;
  const AdapterNames& names;
  const ShardingTable& shardings;  // whose parts are the parts of fused layers

  // Throws InputError naming the module where it does not fit the tensor.
  AdapterChanges changes_of(const AskedTensor& asked) const;
};

// How many inputs a product of the file gives our layer `layer` of `num_rows` outputs; nothing
// where it changes none.
std::optional<std::int64_t> inputs_of(const AdapterFile& file, const AdapterNames& names,
                                      const std::string& layer, std::int64_t num_rows);

// The columns of a share, one run after the other; all of them if there are none.
Tensor taken_columns(const Tensor& rows, const std::vector<Share>& columns);

// Changes the wanted share of a tensor, float32, in place.
void apply(const std::vector<Change>& changes, const Wanted& wanted, const Tensor& share);

}  // namespace braid
