// The words of models' names, as people write them on files: "fluxDevQ8", "portraitMixZIT_v2".
#pragma once

#include <string>
#include <vector>

namespace braid {

// Words are in lower case, cut at punctuation, digits and capitals, and around words that need no
// cut: {"flux", "dev", "q", "8"}.
std::vector<std::string> words_of_name(const std::string& name);

// Whether the words say this one of a model's name ("turbo"), also by its usual abbreviations
// ("zit"), and not its contrary ("de-turbo").
bool says_word(const std::vector<std::string>& words, const std::string& word);

// Leaves out words of formats and versions: "z_image_bf16" is {"z", "image"}.
std::vector<std::string> without_formats(const std::vector<std::string>& words);

}  // namespace braid
