#include "app/flags/unused_flags.h"

#include <algorithm>
#include <initializer_list>

#include "pipeline/deployment/degrees.h"
#include "pipeline/devices/devices.h"

namespace braid {
namespace {

bool has_preset(const Memory& m) { return !m.preset.empty() && m.preset != "none"; }

bool has_gpu(const PipelineOptions& o) {
  const auto is_gpu = [](const std::string& device) { return device.starts_with("cuda"); };
  return o.devices.empty() ? is_gpu(o.device) : std::ranges::any_of(o.devices, is_gpu);
}

// Whether a GPU without room for the weights implies a budget.
bool implies_budget(const PipelineOptions& o, const StatedMemory& stated, Fit fit) {
  return fit == Fit::kAuto && has_gpu(o) && o.memory.preset.empty() && !stated.transformer;
}

// Whether something else than the flags may choose a mode that none of them states.
bool chooses_modes(const PipelineOptions& o, const StatedMemory& stated, Fit fit) {
  return has_preset(o.memory) || o.memory.budget.is_set() || implies_budget(o, stated, fit);
}

// A part's mode, and whether another may be chosen instead.
struct PossibleMode {
  OffloadMode mode;
  bool is_open;

  bool may_be(std::initializer_list<OffloadMode> modes) const {
    return is_open || std::ranges::find(modes, mode) != modes.end();
  }
  bool may_offload() const { return is_open || mode != OffloadMode::kNone; }
};

struct PossibleModes {
  PossibleMode transformer, text, vae;

  bool may_offload() const {
    return transformer.may_offload() || text.may_offload() || vae.may_offload();
  }
};

PossibleModes possible_modes(const PipelineOptions& o, const StatedMemory& stated, Fit fit) {
  const auto& modes = o.memory.offload;
  const bool is_open = chooses_modes(o, stated, fit);
  return {.transformer = {modes.transformer, is_open && !stated.transformer},
          .text = {modes.text, is_open && !stated.text},
          .vae = {modes.vae, is_open && !stated.vae}};
}

// Flags of groups that are copied, where the modes have none.
std::vector<std::string> unused_group_flags(const PipelineOptions& options,
                                            const StatedMemory& stated, Fit fit) {
  using enum OffloadMode;
  const auto modes = possible_modes(options, stated, fit);
  std::vector<std::string> unused;
  const auto add = [&](bool is_given, const char* flag, const char* why) {
    if (is_given) unused.push_back(std::string(flag) + " is not used: " + why);
  };
  if (!modes.transformer.may_be({kBlock}) && !modes.text.may_be({kBlock}))
    add(stated.blocks, "--offload-group", "only --offload block has groups of blocks");
  const auto copies_ahead = [](const PossibleMode& part) { return part.may_be({kBlock, kLeaf}); };
  if (!copies_ahead(modes.transformer) && !copies_ahead(modes.text) && !copies_ahead(modes.vae))
    add(stated.prefetch, "--prefetch", "only --offload block and leaf copy ahead");
  if (modes.transformer.may_be({kBlock, kLeaf, kSequential})) {
    const bool may_stay = options.memory.offload.resident != 0 ||
                          (!stated.resident && chooses_modes(options, stated, fit));
    add(stated.residency && !may_stay, "--residency", "there is no --resident");
    return unused;
  }
  const auto* const none = "only a transformer with --offload block, leaf or sequential has groups";
  add(stated.resident, "--resident", none);
  add(stated.residency, "--residency", none);
  return unused;
}

bool is_one_rank(const PipelineOptions& o) {
  const auto& layout = o.layout;
  const bool may_be_several =
      layout.fit == Fit::kAuto || has_degrees(layout) || device_names(o).size() > 1;
  return !may_be_several && layout.layer_split == 1 && !is_launched();
}

}  // namespace

bool offloads(const Offload& o) {
  return o.transformer != OffloadMode::kNone || o.text != OffloadMode::kNone ||
         o.vae != OffloadMode::kNone;
}

std::vector<std::string> unused_memory_flags(const PipelineOptions& options,
                                             const StatedMemory& stated, Fit fit) {
  auto unused = unused_quantize_flags(options.memory, stated);
  const auto& offload = options.memory.offload;
  const bool is_read_in_a_way = offload.reads != DiskReads::kAuto;
  if (possible_modes(options, stated, fit).may_offload()) {
    const bool may_choose_files =
        options.memory.budget.is_set() || implies_budget(options, stated, fit);
    for (auto& sentence : unused_group_flags(options, stated, fit))
      unused.push_back(std::move(sentence));
    if (is_read_in_a_way && offload.folder.empty() && !may_choose_files)
      unused.emplace_back("--disk-reads is not used: there is no --offload-dir");
    return unused;
  }
  const auto add = [&](bool is_given, const char* flag) {
    if (is_given) unused.push_back(std::string(flag) + " is not used: nothing is offloaded");
  };
  add(stated.blocks, "--offload-group");
  add(stated.prefetch, "--prefetch");
  add(stated.resident, "--resident");
  add(stated.residency, "--residency");
  add(stated.pin, "--pin");
  add(offload.checks_order, "--check-order");
  add(!offload.folder.empty(), "--offload-dir");
  add(is_read_in_a_way, "--disk-reads");
  return unused;
}

std::vector<std::string> unused_quantize_flags(const Memory& memory, const StatedMemory& stated) {
  const bool may_quantize = memory.quantize != Quantize::kNone || memory.budget.may_quantize ||
                            (has_preset(memory) && !stated.quantize);
  if (memory.keep_dense.empty() || may_quantize) return {};
  return {"--quantize-skip is not used: the transformer is not quantized"};
}

std::vector<std::string> unused_convert_flags(const Memory& memory, const StatedMemory& stated) {
  auto unused = unused_quantize_flags(memory, stated);
  const auto add = [&](Quantize form, const std::string& flag) {
    if (form == Quantize::kInt8Dynamic)
      unused.push_back(flag +
                       " int8-dynamic is written as int8, as such files do not say what happens to "
                       "tokens (rotated ones do): give it again when you draw with them");
  };
  add(memory.quantize, "--quantize");
  add(memory.quantize_text, "--quantize-text");
  return unused;
}

std::vector<std::string> unused_cache_flags(const CacheOptions& cache,
                                            const std::set<std::string>& given) {
  std::vector<std::string> unused;
  const bool is_off = cache.mode == CacheMode::kOff;
  if (is_off && given.contains("--cache-limit"))
    unused.emplace_back("--cache-limit is not used: --cache is off");
  if (cache.mode != CacheMode::kAccumulated && given.contains("--cache-polynomial"))
    unused.push_back(std::string("--cache-polynomial is not used: ") +
                     (is_off ? "--cache is off" : "only --cache accumulated applies it"));
  return unused;
}

// Degrees that nobody gave are of cfg and ulysses.
std::vector<std::string> unused_layout_flags(const PipelineOptions& options) {
  const auto& layout = options.layout;
  const Layout usual;
  std::vector<std::string> unused;
  const auto add = [&](bool is_given, const char* flag, const char* why) {
    if (is_given) unused.push_back(std::string(flag) + " is not used: " + why);
  };
  const bool is_chosen = layout.fit == Fit::kAuto;
  if (layout.tp == 1 && !is_chosen) {
    add(layout.modulation != usual.modulation, "--tp-modulation", "there is no --tp");
    add(layout.text != usual.text, "--text-encoder", "there is no --tp");
  }
  if (layout.ring == 1 && !is_chosen)
    add(layout.ring_form != usual.ring_form, "--ring-form", "there is no --ring");
  const bool waits = layout.deadline != usual.deadline;
  const bool decodes_alone = layout.decode != usual.decode;
  const bool sums_natively = layout.collectives != usual.collectives;
  const bool measures_shares = layout.shares_fit == Fit::kAuto;
  if ((!waits && !decodes_alone && !sums_natively && !measures_shares) || !is_one_rank(options))
    return unused;
  add(measures_shares, "--shares", "there is one rank");
  add(decodes_alone, "--vae", "there is one rank");
  add(sums_natively, "--collectives", "there is one rank");
  add(waits, "--deadline", "there is one rank");
  return unused;
}

std::vector<std::string> unused_request_flags(const PipelineOptions& options,
                                              const PictureFlags& pictures) {
  std::vector<std::string> unused;
  if (options.adapters.empty() && options.adapter_mode != AdapterMode::kAuto)
    unused.emplace_back("--lora-mode is not used: there is no --lora");
  const bool has_pictures = !pictures.init.empty() || !pictures.mask.empty() ||
                            !pictures.references.empty() || !pictures.controls.empty();
  if (!has_pictures && pictures.max_pixels != PictureFlags().max_pixels)
    unused.emplace_back("--max-pixels is not used: there is no input picture");
  return unused;
}

}  // namespace braid
