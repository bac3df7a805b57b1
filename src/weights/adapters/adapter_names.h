// How adapter files spell the layers of one part of a model.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weights/names.h"
#include "weights/sharding.h"

namespace braid {

// A layer to which some models of a family add inputs. Adapters for only the first `inputs` of them
// leave the others as they are.
struct GrownLayer {
  std::string layer = {};
  std::int64_t inputs = 0;
};

class AdapterFile;

struct AdapterNames {
  // Prefixes a module's name may have. A part whose prefixes include "" owns every module that
  // begins with no other part's prefix.
  std::vector<std::string> prefixes = {};
  std::vector<Names> tables = {};  // each is a checkpoint's or trainer's spelling of our layers
  GrownLayer grown = {};
  // A clause on what a file that is left unused in part looks like; empty if it may be for this
  // model.
  std::function<std::string(const AdapterFile&)> likeness = {};
};

// The usual prefixes of a denoiser.
AdapterNames denoiser_adapter_names(std::vector<Names> tables);

// A module that may change rows of one of our tensors.
struct AdapterTarget {
  std::string module;  // in the file, underscored
  std::string name;    // as peft's patterns have it: in the part, with dots
  std::string part;    // the prefix as peft names the part: "transformer"
  Share rows;          // of our tensor
  RowOrder order = {};
};

// All modules that may change `layer`, which has `num_rows` outputs.
std::vector<AdapterTarget> targets_of(const AdapterNames& names, const ShardingTable& shardings,
                                      const std::string& layer, std::int64_t num_rows);

// "; it looks like a LoRA for ...": the end of a complaint about a file that does not fit.
std::string likeness_clause(const AdapterNames& names, const AdapterFile& file);

// Whether a file's module begins with one of `prefixes`, and not with a longer one of `others`.
bool owns(const std::vector<std::string>& prefixes, const std::vector<std::string>& others,
          const std::string& module);

// Underscored names under which a file may hold one of our tensors whole.
std::vector<std::string> replacements_of(const AdapterNames& names, const std::string& path);

}  // namespace braid
