// Where the parts of a model lie: a directory in the diffusers layout, or a single-file
// transformer and such a directory for everything else.
#pragma once

#include <filesystem>

#include "base/json.h"
#include "braid/braid.h"
#include "weights/files/checkpoint.h"

namespace braid {

struct ModelFiles {
  std::filesystem::path folder;       // the diffusers directory
  std::filesystem::path single_file;  // the transformer, where it is not in `folder`; else empty

  std::filesystem::path config_of(const std::string& part) const;  // FOLDER/PART/config.json
  Checkpoint open_transformer() const;
  Checkpoint open_text_encoder(const std::string& part) const;
  Checkpoint open_vae() const;
};

// Checks what is cheap to check: that the directory is a FluxPipeline and has the parts it needs.
// Throws InputError.
ModelFiles find_model(const PipelineOptions& options);

// What a request gets where it says nothing.
struct ModelDefaults {
  int width = 1024, height = 1024, steps = 28;
  double guidance = 3.5;
  int max_sequence_length = 512;
};

// From generation_config.json in the model's directory; without one, what FLUX.1-dev (has a
// guidance embedder) or FLUX.1-schnell (has none) publish.
ModelDefaults read_defaults(const ModelFiles& files, bool guidance_embeds);

}  // namespace braid
