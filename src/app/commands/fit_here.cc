#include "app/commands/fit_here.h"

#include "app/commands/fitted_in_files.h"
#include "app/flags/memory_words.h"
#include "app/print/readable.h"

namespace braid {
namespace {

std::string megabytes_flag(const char* flag, std::int64_t bytes) {
  return bytes > 0 ? " " + std::string(flag) + " " + std::to_string(bytes / 1'000'000) + "MB" : "";
}

// The flags that make generate choose the same; it creates the files of weights it needs.
std::string flags_of_budget(const Memory& m) {
  const bool is_in_8_bits = m.quantize != Quantize::kNone || m.quantize_text != Quantize::kNone;
  return megabytes_flag("--memory", m.budget.device) +
         megabytes_flag("--host-memory", m.budget.host) +
         (is_in_8_bits ? " --quantize auto --quantize-text auto" : "");
}

}  // namespace

std::string fit_here(PipelineOptions options, const std::string& device, const Budget& budget) {
  options.memory.budget = budget;
  const auto taken = [&](const Fit& fit) {
    return "takes " + readable_bytes(double(fit.device_peak)) + " of the " +
           readable_bytes(double(budget.device)) + " that " + device + " has free";
  };
  try {
    const auto chosen = fitted(options, {});
    const auto flags = flags_of(chosen.options.memory);
    return taken(chosen.fit) + (flags.empty() ? "" : ", with " + flags);
  } catch (const DoesNotFit& refusal) {
    if (!files_would_help(refusal))
      return std::string("does not fit: ") + refusal.what() + help_sentence(refusal, "generate");
  }
  options.memory.offload.folder = "pages";
  const auto chosen = fitted(options, {});
  auto memory = chosen.options.memory;
  memory.budget = budget;
  return taken(chosen.fit) + ", with " + readable_bytes(double(chosen.fit.files)) +
         " of temporary files and" + flags_of_budget(memory);
}

}  // namespace braid
