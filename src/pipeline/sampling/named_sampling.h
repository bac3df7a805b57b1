// Sampling that files name: a model's model_index.json and generation_config.json, and the metadata
// of LoRAs that were distilled for certain noise levels.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "braid/sampling.h"
#include "weights/adapters/adapter_file.h"

namespace braid {

struct NamedSampling {
  Sampling sampling = {};
  std::optional<int> steps = {};
};

// `sampler`, `schedule`, `sigmas`, `base_sigmas` (or diffusers' `sample_sigmas`), `shift` and
// `num_inference_steps` of a JSON object; absent ones stay unset. Throws InputError that begins
// with `source` for values out of range and names that Braid does not have.
NamedSampling read_named_sampling(const Json& object, const std::string& source);

// The same of adapters' metadata, where texts hold JSON or numbers between commas. The first
// adapter that names something counts. Samplers and schedules that Braid does not have are ignored:
// other programs have words of their own there.
NamedSampling sampling_of_adapters(const std::vector<AppliedAdapter>& adapters);

// Whether noise levels are listed, as many as steps; or that, or how they are chosen is named.
inline bool lists_levels(const Sampling& s) { return !s.sigmas.empty() || !s.base_sigmas.empty(); }
inline bool names_levels(const Sampling& s) { return s.schedule || lists_levels(s); }

// What is unset in `first` as in `otherwise`.
NamedSampling joined_sampling(const NamedSampling& first, const NamedSampling& otherwise);

}  // namespace braid
