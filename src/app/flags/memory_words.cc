#include "app/flags/memory_words.h"

#include <map>

#include "app/flags/option_names.h"
#include "base/error.h"
#include "base/readable_bytes.h"

namespace braid {
namespace {

// " --flag value", unless it is the default.
template <class Value>
std::string flag_of(const char* flag, const Value& value, const Value& otherwise,
                    const std::string& text) {
  return value == otherwise ? "" : std::string(" --") + flag + " " + text;
}
template <class Value>
std::string flag_of(const char* flag, Value value, Value otherwise, const Choices<Value>& names) {
  return flag_of(flag, value, otherwise, choice_name(names, value));
}

std::string flags_of(const Offload& o) {
  const Offload none;
  const auto& modes = kOffloadModes;
  std::string flags = flag_of("offload", o.transformer, none.transformer, modes) +
                      flag_of("offload-text", o.text, o.transformer, modes) +
                      flag_of("offload-vae", o.vae, o.transformer, modes) +
                      flag_of("offload-group", o.blocks, none.blocks, std::to_string(o.blocks)) +
                      flag_of("prefetch", o.prefetch, none.prefetch, std::to_string(o.prefetch)) +
                      flag_of("resident", o.resident, none.resident,
                              o.resident < 0 ? "all" : std::to_string(o.resident)) +
                      flag_of("residency", o.residency, none.residency, kResidencies) +
                      flag_of("pin", o.pin, none.pin, kPins) +
                      (o.checks_order ? " --check-order" : "");
  if (o.folder.empty()) return flags;
  return flags + " --offload-dir" + flag_of("disk-reads", o.reads, none.reads, kDiskReads);
}

}  // namespace

std::string layers_text(const std::vector<std::string>& layers) {
  std::string text;
  for (const auto& layer : layers) text += (text.empty() ? "" : ",") + layer;
  return text;
}

std::string flags_of(const Memory& m) {
  const auto skipped = layers_text(m.keep_dense);
  const auto flags = flag_of("quantize", m.quantize, Quantize::kNone, kQuantizeForms) +
                     flag_of("quantize-text", m.quantize_text, Quantize::kNone, kQuantizeForms) +
                     flag_of("quantize-skip", skipped, std::string(), skipped) +
                     flags_of(m.offload);
  return flags.empty() ? flags : flags.substr(1);
}

std::string memory_plan_sentence(const MemoryPlan& plan, ComputedOn where) {
  auto flags = flags_of(plan.memory);
  if (plan.tiling == VaeTiling::kOn)
    flags += (flags.empty() ? "" : " ") + std::string("--vae-tiling on");
  const auto text = (flags.empty() ? "all weights stay" : flags) + ", predicted peak " +
                    readable_bytes(double(plan.device_peak));
  if (where == ComputedOn::kHost) return text;
  return text + " per device, " + readable_bytes(double(plan.host_peak)) + " on the host";
}

std::string help_sentence(const DoesNotFit& refusal, const std::string& command) {
  const bool serves = command == "serve";
  const auto flags_of_remedy = [serves](DoesNotFit::Remedy remedy) {
    switch (remedy) {
      case DoesNotFit::Remedy::kFiles:
        return "--offload-dir DIR";
      case DoesNotFit::Remedy::kEightBits:
        return "--quantize auto --quantize-text auto";
      case DoesNotFit::Remedy::kEightBitsInFiles:
        return "--quantize auto --quantize-text auto --offload-dir DIR";
      case DoesNotFit::Remedy::kSmallPicture:
        break;
    }
    return serves ? "--max-pixels 262144" : "a --size of 512x512";
  };
  std::string help;
  for (const auto& [remedy, device_peak] : refusal.help())
    help += (help.empty() ? "; it would fit with " : ", or ") +
            std::string(flags_of_remedy(remedy)) + " (" + readable_bytes(double(device_peak)) + ")";
  if (!help.empty()) return help;
  return text_of("; a smaller ", serves ? "--max-pixels" : "--size", " or more devices would help");
}

std::string takes_less(const std::string& command) {
  static const std::map<std::string, std::string> kLess = {
      {"", "a smaller picture"},
      {"generate", "a smaller --size, --batch-size 1, --vae-tiling on or --dtype bfloat16"},
      {"serve", "--memory BYTES, --offload block or --dtype bfloat16"},
      {"verify", "a smaller --size or --dtype bfloat16"},
      {"bench", "a smaller --size or --dtype bfloat16"}};
  const auto less = kLess.find(command);
  return less == kLess.end() ? "" : less->second;
}

}  // namespace braid
