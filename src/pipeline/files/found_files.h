// Finds the missing files of a model where only some are named: in a models folder of ComfyUI, in
// Hugging Face's cache, inside a checkpoint that holds all parts, and among the configurations and
// tokenizers that come with Braid.
#pragma once

#include "braid/braid.h"
#include "pipeline/files/model_files.h"

namespace braid {

// The options with every name of a file resolved to a path: looked up as a path first, then in
// `comfy`, which becomes the folder of models itself, then in Hugging Face's cache. The components
// of a lone transformer are chosen if they can be; `say` hears of it, and `warn` of components that
// are not read. Opens no model. Throws InputError.
PipelineOptions with_paths(PipelineOptions options, const Warn& say = {}, const Warn& warn = {});

// The options that name all files themselves, without `comfy`, and where the parts lie.
struct FoundModel {
  PipelineOptions options;
  ModelFiles files;
};

// Finds the files that `given` leaves open; options that name all files stay as they are. `say`
// hears what was chosen where several would do, `warn` which components are not read, and which
// files could not be read, so that others were taken. Runs the cheap checks: the directory
// describes a pipeline of a known family with all its parts, and single files hold those parts.
// Throws InputError, which lists the candidates where none fits.
FoundModel find_model(const PipelineOptions& given, WeightsNeeded needed = WeightsNeeded::kAll,
                      const Warn& say = {}, const Warn& warn = {});

}  // namespace braid
