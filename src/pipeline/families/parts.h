// Parts shared by models of several families, and helpers to read their descriptions.
#pragma once

#include "base/file.h"
#include "models/causal_lm/model.h"
#include "pipeline/families/description.h"
#include "pipeline/files/model_files.h"

namespace braid {

// The decoder of an AutoencoderKL or AutoencoderKLFlux2.
Part autoencoder_part(const VaeConfig& config);

// A language model with `states` as the embedded prompt.
Part causal_lm_part(const CausalLmConfig& config, const HiddenStates& states);

// The transformer's configuration: read(json) from its config.json or, for a single file without
// one, infer(checkpoint) from the shapes.
template <class Read, class Infer>
auto read_transformer(const ModelFiles& files, Read read, Infer infer) {
  const auto path = files.config_of("transformer");
  const bool has_config = files.single_file.empty() || is_there(path);
  return has_config ? read(read_json_object(path)) : infer(files.open("transformer"));
}

}  // namespace braid
