// Maps a checkpoint's names to ours: one table per model and spelling, pure data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// The order of our rows among the checkpoint's.
struct RowOrder {
  enum Way {
    kAsStored,
    kSwapHalves,    // the second half of the rows first: [scale | shift] -> [shift | scale]
    kDeinterleave,  // in each head the even rows first, as RoPE of halves needs them, not of pairs
    kFlattened,     // a table, stored as one vector: its rows follow each other
  };
  Way way = kAsStored;
  std::int64_t head_width = 0;  // only for kDeinterleave
};

// One of our modules, and the checkpoint's modules whose rows it concatenates. `*` stands for one
// path segment and is carried over.
struct KeyRule {
  std::string name;
  std::vector<std::string> stored;
  RowOrder order = {};
  // How many of the parts that sharding cuts by themselves each of `stored` has. Empty: one each,
  // and the first one has those that are left over.
  std::vector<int> parts = {};
};

struct Names {
  // The first matching row whose tensors exist is used; a module that no row matches keeps its
  // name.
  std::vector<KeyRule> spellings = {};
  std::string prefix = {};                // precedes every name in the checkpoint
  std::vector<std::string> ignored = {};  // patterns of tensors the model may leave unused
};

// The source of one of our tensors' rows.
struct Origin {
  std::vector<std::string> tensors;
  RowOrder order = {};
  std::vector<int> parts = {};  // as KeyRule's
};

// All possible origins of `path` ("double_blocks.3.img_attn.qkv.weight"), best first, never empty.
std::vector<Origin> origins_of(const Names& names, std::string_view path);

// "a.*.c" matches "a.7.c", and "a.**" everything that begins with "a."; segments are separated by
// dots.
bool matches(std::string_view pattern, std::string_view path);
bool matches_any(const std::vector<std::string>& patterns, std::string_view path);

}  // namespace braid
