// Configurations that a conversion changes because its weights are no longer those of the model.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "pipeline/families/description.h"
#include "weights/adapters/adapter_file.h"
#include "weights/files/checkpoint.h"

namespace braid {

// Reads the fields in their order, unless some of them are numbers that JSON has no words for.
nlohmann::ordered_json read_ordered(const std::filesystem::path& path);

// Says what was written: numbers or our codes, which the quantization of the files that were read
// no longer describes, and of a cut text encoder not all layers, which transformers would fill with
// random numbers.
void describe_written(const std::filesystem::path& config, bool is_cut);

// The metadata of a single file made of `transformer`: what that says of itself, and the name of
// the model's `directory`, by which the other parts are found again.
std::map<std::string, std::string> written_notes(const Checkpoint& transformer,
                                                 const std::filesystem::path& directory);

// Whether the adapters' metadata names a sampler, noise levels or a number of steps.
bool name_sampling(const std::vector<AppliedAdapter>& adapters);

// Writes what adapters name into the generation_config.json of a model that has them in its
// weights, over the model's own. `drawn` is what both together mean. Levels in the model's index
// would win over it: they are removed where the adapters name others.
void write_sampling(const std::filesystem::path& model, const std::vector<AppliedAdapter>& adapters,
                    const RequestDefaults& drawn);

}  // namespace braid
