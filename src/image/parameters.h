// A picture's text in the form of AUTOMATIC1111's web UI, which other programs read from JPEGs and
// WebPs.
#pragma once

#include "image/png.h"

namespace braid {

// The prompt, a line with the negative one, and a line with all the rest: "Steps: 4, Seed: 7, ...".
// Keys known to the web UI get its names, and scales and samplers of Braid's own texts its meanings
// (image/web_ui_terms.h).
std::string parameters_of(const PngText& text);

// A text of Braid's own with these lines behind it, under the web UI's key; unchanged if there is
// no room for them in a PNG. Texts of other programs are unchanged, here and below.
PngText with_parameters(PngText text);
// The same without these lines, which say less than the text itself.
PngText without_own_parameters(PngText text);

// The same text with its original keys, prompts first. Text without such a last line is a prompt.
PngText text_of_parameters(std::string_view parameters);

// The text of a picture whose prompt was rewritten: `original` stands behind it, as
// "original_prompt". Empty: it was not.
PngText with_original_prompt(PngText text, const std::string& original);

}  // namespace braid
