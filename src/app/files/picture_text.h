// The text in a picture's file on how it was made.
#pragma once

#include <string>

#include "braid/braid.h"
#include "image/input_file.h"
#include "image/png.h"
#include "pipeline/request/settings.h"

namespace braid {

// Text chunks of the PNG. The same request gives the same text, wherever model and picture are
// stored.
PngText text_of_picture(const Picture& picture, const Prompt& prompt, const Settings& settings,
                        const PipelineOptions& options, const std::vector<InputFile>& inputs);

// "ink.safetensors=0.8, hands.safetensors=1": without folders.
std::string adapters_text(const std::vector<Adapter>& adapters);

}  // namespace braid
