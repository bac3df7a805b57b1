// Parts of a model whose weights are not where its components are: a transformer in a single file
// that was given alone.
#pragma once

#include "pipeline/families/family.h"

namespace braid {

std::vector<const Part*> parts_without_weights(const ModelFiles& files, const Family& family);

// Throws InputError naming the parts that lack weights, and the flags that give them.
void require_all_weights(const ModelFiles& files);

// How likely a file that fits a part is meant for it, by its name and metadata: the larger number
// is the likelier. Plain encoders before their other versions ("abliterated", "instruct").
int likelihood(const std::filesystem::path& file, const Part& part, const std::string& family);

}  // namespace braid
