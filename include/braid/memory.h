// How a model's weights are stored, for those who have less memory than the model would like.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace braid {

// Of the weights of dense layers.
enum class Quantize {
  kNone,
  kInt8,         // 8-bit codes, a float32 scale a row: torchao's Int8WeightOnlyConfig version 2
  kInt8V1,       // the scale in the model's dtype: torchao's version 1
  kInt8Dynamic,  // as kInt8, and activations in 8 bits too, a scale a token: faster, less exact
  kFloat8,       // e4m3, a float32 scale a row; activations likewise where a GPU multiplies them
};

// Where the weights of a part of the model are while it does not need them.
enum class OffloadMode {
  kNone,        // on the device, always
  kModel,       // a part at a time is on the device
  kBlock,       // some blocks at a time
  kLeaf,        // some layers at a time
  kSequential,  // one layer at a time, copied when it is needed
};

enum class Residency { kLeading, kStrided };    // which groups stay: the first, or evenly spread
enum class Pin { kAlways, kOnTheFly, kNever };  // host memory that a device copies from by itself

// How pages on a disk are read: past the system's cache, through it, or what of them is in it from
// there and the rest past it.
enum class DiskReads { kAuto, kDirect, kMapped };

struct Offload {
  OffloadMode transformer = OffloadMode::kNone, text = OffloadMode::kNone, vae = OffloadMode::kNone;
  int blocks = 1;    // of a group, with kBlock
  int prefetch = 1;  // groups that are copied ahead
  int resident = 0;  // groups of the transformer that stay on the device; -1: all
  Residency residency = Residency::kStrided;
  Pin pin = Pin::kAlways;
  std::filesystem::path folder = {};  // of pages on a disk; empty: they are in host memory
  DiskReads reads = DiskReads::kAuto;
};

// How much memory may be taken. A Pipeline with a budget chooses by itself how weights are kept and
// whether pictures are decoded in tiles: what is fastest of all that stays below it. It
// chooses for one picture of the model's default size; a larger one may need more.
struct Budget {
  // Bytes: of each device (of a CPU: resident in the process), and resident in the process. 0: any.
  std::int64_t device = 0, host = 0;
  // Whether weights may be kept in 8 bits, if nothing else fits: of the transformer, and of text
  // encoders.
  bool may_quantize = false, may_quantize_text = false;
  // What the choice leaves as it is.
  struct Fixed {
    bool transformer = false, text = false, vae = false;  // modes of Offload
    bool prefetch = false, resident = false;
  };
  Fixed fixed = {};
  // Nobody asked for it: nothing that changes the picture is chosen, and where nothing fits it is
  // what comes nearest, not an error.
  bool is_implied = false;

  bool is_set() const { return device > 0 || host > 0; }
};

struct Memory {
  Quantize quantize = Quantize::kNone;       // the transformer's dense layers
  Quantize quantize_text = Quantize::kNone;  // the second text encoder's
  // Layers of the transformer that are not quantised, in Black Forest Labs' names; `*` stands for
  // one segment: "img_in", "double_blocks.*.img_mod.lin".
  std::vector<std::string> keep_dense = {};
  Offload offload = {};
  Budget budget = {};
};

}  // namespace braid
