#include "app/flags/unused_flags.h"

#include <algorithm>

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

bool may_offload(const PipelineOptions& o, const StatedMemory& stated, Fit fit) {
  const auto& m = o.memory;
  if (offloads(m.offload)) return true;
  if (stated.transformer && stated.text && stated.vae) return false;
  return has_preset(m) || m.budget.is_set() || implies_budget(o, stated, fit);
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
  if (may_offload(options, stated, fit)) {
    const bool may_choose_files =
        options.memory.budget.is_set() || implies_budget(options, stated, fit);
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

}  // namespace braid
