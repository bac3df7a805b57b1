#include "app/commands/fit_here.h"

#include <limits>

#include "app/commands/fitted_in_files.h"
#include "app/flags/memory_words.h"
#include "app/print/readable.h"
#include "base/error.h"

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

std::optional<std::string> shortage_here(const PipelineOptions& options, const Request& request,
                                         std::int64_t free) {
  const auto& memory = options.memory;
  if (free <= 0 || memory.budget.is_set() || !memory.offload.folder.empty()) return {};
  auto as_it_is = options;
  as_it_is.memory.budget = {.device = std::numeric_limits<std::int64_t>::max(),
                            .fixed = {true, true, true, true, true},
                            .is_implied = true};
  const auto predicted = fitted(as_it_is, request);
  if (!predicted.is_on_host || predicted.fit.device_peak <= free) return {};
  constexpr double kLeftAlone = 0.95;  // of what is free
  const auto amount = std::int64_t(kLeftAlone * double(free)) / 1'000'000;
  auto within = options;
  within.memory.budget = {.device = amount * 1'000'000};
  const auto flag = text_of("--memory ", amount, "MB");
  const auto said =
      text_of("this is predicted to take ", readable_bytes(double(predicted.fit.device_peak)),
              " of memory, ", readable_bytes(double(free)), " is free here: ");
  try {
    (void)fitted(within, request);
    return said + flag + " keeps within that";
  } catch (const DoesNotFit& refusal) {
    if (files_would_help(refusal)) return said + flag + " keeps within that, with weights in files";
    return said + flag + " would not do" + help_sentence(refusal, "generate");
  }
}

}  // namespace braid
