// How a checkpoint's names become ours: a table per model and spelling, pure data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid {

enum class Order {
  kAsStored,
  kSwapHalves,  // the second half of the rows first: [scale | shift] -> [shift | scale]
};

// One of our modules, and the module or modules of the checkpoint whose rows it is made of, one
// after the other. `*` stands for one path segment and is carried over.
struct Spelling {
  std::string ours;
  std::vector<std::string> theirs;
  Order order = Order::kAsStored;
};

struct Names {
  // The first row that matches and whose tensors exist is taken; a module that no row matches has
  // the same name there as here.
  std::vector<Spelling> spellings = {};
  std::string prefix = {};                // stands before every name of the checkpoint
  std::vector<std::string> ignored = {};  // patterns of tensors that the model may leave unused
};

// Where the rows of one tensor of ours come from.
struct Origin {
  std::vector<std::string> tensors;
  Order order = Order::kAsStored;
};

// All that may supply `path` ("double_blocks.3.img_attn.qkv.weight"), best first, never empty.
std::vector<Origin> origins_of(const Names& names, std::string_view path);

// "a.*.c" matches "a.7.c", and "a.**" all that begins with "a."; segments are separated by dots.
bool matches(std::string_view pattern, std::string_view path);

}  // namespace braid
