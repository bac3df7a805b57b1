// How a model's weights are stored when memory is short.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "braid/fit.h"

namespace braid {

// How the weights of dense layers are stored.
enum class Quantize {
  kNone,
  kInt8,         // 8-bit codes, one float32 scale per row: torchao's Int8WeightOnlyConfig version 2
  kInt8V1,       // scales in the model's dtype: torchao's version 1
  kInt8Dynamic,  // kInt8 with 8-bit activations, one scale per token: faster, less exact
  kFloat8,       // e4m3, one float32 scale per row; activations too where a GPU multiplies float8
};

// Where a part's weights live.
enum class OffloadMode {
  kNone,        // always on the device
  kModel,       // one part at a time on the device
  kBlock,       // some blocks at a time
  kLeaf,        // some layers at a time
  kSequential,  // one layer at a time, copied when needed
};

// Which groups stay: the first, or those that leave the others time to be copied meanwhile.
enum class Residency { kLeading, kStrided };
enum class Pin { kAlways, kOnTheFly, kNever };  // whether host memory is page-locked

// How pages are read from disk: bypassing the system's page cache (kDirect), through it (kMapped),
// or (kAuto) from the cache what it holds and the rest directly.
enum class DiskReads { kAuto, kDirect, kMapped };

struct Offload {
  OffloadMode transformer = OffloadMode::kNone, text = OffloadMode::kNone, vae = OffloadMode::kNone;
  int blocks = 1;    // blocks per group, with kBlock
  int prefetch = 1;  // groups copied ahead
  int resident = 0;  // groups of the transformer that stay on the device; -1: all
  Residency residency = Residency::kStrided;
  Pin pin = Pin::kAlways;
  std::filesystem::path folder = {};  // folder for pages on disk; empty means host memory
  DiskReads reads = DiskReads::kAuto;
  // Follows every copy and use of weights on the device; a run throws Error at the first that is
  // out of order.
  bool checks_order = false;
};

// Memory limits. A Pipeline with a budget chooses how weights are kept and whether pictures are
// decoded in tiles: the fastest option within the limits. Settings of Memory that differ from their
// defaults stay. It plans for one picture of the model's default size; larger ones may need more.
struct Budget {
  // Bytes: per device (for a CPU: resident in the process), and resident in the process. 0:
  // unlimited.
  std::int64_t device = 0, host = 0;
  // Whether weights may be quantized to 8 bits if nothing else fits: the transformer's, the text
  // encoders'.
  bool may_quantize = false, may_quantize_text = false;

  bool is_set() const { return device > 0 || host > 0; }
};

// Whether a GPU's recording of a step, which holds the memory that a step works in, stays while
// pictures are decoded. Otherwise the next picture records it again.
enum class RecordedStep { kKept, kDropped };

struct Memory {
  Quantize quantize = Quantize::kNone;       // the dense layers of transformer and ControlNets
  Quantize quantize_text = Quantize::kNone;  // the large text encoders'
  // Layers of the transformer, and of ControlNets that have one so named, that are not quantized,
  // in Black Forest Labs' names. `*` stands for one segment: "img_in",
  // "double_blocks.*.img_mod.lin".
  std::vector<std::string> keep_dense = {};
  Offload offload = {};
  RecordedStep recorded_step = RecordedStep::kKept;
  Budget budget = {};
  // Where weights go by device: a name listed by `braid info --presets`, or "auto" for the GPU's
  // own. Settings that differ from their defaults stay. "none" or empty: no preset.
  std::string preset = {};
  // kAuto: with neither offload, budget nor preset, weights that do not fit a GPU are offloaded,
  // which does not change pictures. Where only files meet a budget, they lie in a temporary folder
  // until the pipeline ends.
  Fit fit = Fit::kAsAsked;
};

}  // namespace braid
