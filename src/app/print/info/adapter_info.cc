#include "app/print/info/adapter_info.h"

#include "pipeline/families/adapter_fit.h"

namespace braid {
namespace {

// Trainers' notes meant for people.
constexpr const char* kNotes[] = {"ss_base_model_version",
                                  "ss_output_name",
                                  "ss_network_dim",
                                  "ss_network_alpha",
                                  "modelspec.title",
                                  "modelspec.architecture",
                                  "sampler",
                                  "schedule",
                                  "sigmas",
                                  "base_sigmas",
                                  "sample_sigmas",
                                  "shift",
                                  "num_inference_steps"};

std::string fit_of(const AdapterSummary& summary) {
  if (summary.fits.empty()) return "no published model";
  std::string names;
  for (const auto& name : summary.fits) names += (names.empty() ? "" : ", ") + name;
  return names + (summary.fits_all ? "" : ", which leave some of its tensors unused");
}

}  // namespace

OrderedJson adapter_info(const std::filesystem::path& path) {
  const AdapterFile file(path);
  const auto summary = summary_of(file);
  OrderedJson ranks = OrderedJson::object(), notes = OrderedJson::object();
  for (const auto& [rank, count] : summary.ranks) ranks[std::to_string(rank)] = count;
  for (const auto* const key : kNotes) {
    const auto it = file.metadata().texts.find(key);
    if (it != file.metadata().texts.end()) notes[key] = it->second;
  }
  return {{"path", path.string()},
          {"kinds", summary.kinds},
          {"spelling", summary.spelling},
          {"fits", fit_of(summary)},
          {"modules", summary.modules},
          {"modules_by_rank", ranks},
          {"parameters", summary.parameters},
          {"bytes", summary.bytes},
          {"notes", notes}};
}

}  // namespace braid
