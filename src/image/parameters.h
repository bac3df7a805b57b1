// The text of a picture in the form of AUTOMATIC1111's web UI, which other programs read out of
// JPEGs and WebPs.
#pragma once

#include "image/png.h"

namespace braid {

// The prompt, a line with the negative one, and a line of all the rest: "Steps: 4, Seed: 7, ...".
// Keys that the web UI has have its names there.
std::string parameters_of(const PngText& text);

// The same text with its own keys, the prompts first. What has no such last line is a prompt.
PngText text_of_parameters(std::string_view parameters);

}  // namespace braid
