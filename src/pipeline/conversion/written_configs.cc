#include "pipeline/conversion/written_configs.h"

#include "base/file.h"
#include "base/hub_cache.h"
#include "base/json.h"
#include "pipeline/families/known_names.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/sampling/named_sampling.h"
#include "weights/files/file_notes.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using WrittenJson = nlohmann::ordered_json;

bool changes_levels(const Sampling& s) { return names_levels(s) || s.shift; }

void write_levels(const Sampling& s, WrittenJson& config) {
  for (const auto* const key : {"schedule", "sigmas", "base_sigmas", "sample_sigmas", "shift"})
    config.erase(key);
  if (s.schedule) config["schedule"] = sampling_name(kSigmaSchedules, *s.schedule);
  if (!s.sigmas.empty()) config["sigmas"] = s.sigmas;
  if (!s.base_sigmas.empty()) config["base_sigmas"] = s.base_sigmas;
  if (s.shift) config["shift"] = *s.shift;
}

// A list of levels says the number of steps. One that is stated beside it counts where a request
// turns the list off.
void write_steps(const RequestDefaults& drawn, WrittenJson& config) {
  const bool is_list = lists_levels(drawn.sampling);
  config.erase("num_inference_steps");
  if (!is_list || drawn.stated_steps)
    config["num_inference_steps"] = is_list ? *drawn.stated_steps : drawn.steps;
}

}  // namespace

WrittenJson read_ordered(const fs::path& path) {
  auto json = WrittenJson::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? WrittenJson::parse(read_json(path).dump()) : json;
}

void describe_written(const fs::path& config, bool is_cut) {
  auto json = read_ordered(config);
  const auto untrue = json.erase("quantization_config") + json.erase("quant_config");
  if (is_cut) json["braid_layers"] = "used";
  if (untrue > 0 || is_cut) write_file(config, json.dump(2) + "\n");
}

std::map<std::string, std::string> written_notes(const Checkpoint& transformer,
                                                 const fs::path& directory) {
  auto notes = lasting_notes(transformer);
  const auto name = model_name(fs::absolute(directory).lexically_normal());
  const auto word = other_word(fs::path(name).filename().string());
  notes.emplace("base_model", word.empty() ? name : name + " " + word);
  return notes;
}

bool name_sampling(const std::vector<AppliedAdapter>& adapters) {
  const auto named = sampling_of_adapters(adapters);
  return named.steps || named.sampling.sampler || changes_levels(named.sampling);
}

void write_sampling(const fs::path& model, const std::vector<AppliedAdapter>& adapters,
                    const RequestDefaults& drawn) {
  if (!name_sampling(adapters)) return;
  const auto named = sampling_of_adapters(adapters);
  const auto path = model / "generation_config.json", index_path = index_of(model);
  auto config = is_there(path) ? read_ordered(path) : WrittenJson::object();
  if (named.sampling.sampler) config["sampler"] = sampling_name(kSamplers, *named.sampling.sampler);
  if (changes_levels(named.sampling)) write_levels(drawn.sampling, config);
  if (named.steps || changes_levels(named.sampling)) write_steps(drawn, config);
  write_file(path, config.dump(2) + "\n");
  auto index = read_ordered(index_path);
  if (changes_levels(named.sampling) && index.erase("sample_sigmas") > 0)
    write_file(index_path, index.dump(2) + "\n");
}

}  // namespace braid
