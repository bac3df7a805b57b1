// The enhancer that flags name, with what it reads: system prompts, a key, answers of before.
#pragma once

#include <optional>

#include "app/flags/enhancer_flags.h"
#include "net/enhancer/enhancer.h"

namespace braid {

// `model`: the folder of the model that draws. Throws InputError for files that are not usable.
net::Enhancer prompt_enhancer(const EnhancerFlags& flags, const std::filesystem::path& model,
                              net::AnswerStore answers);

}  // namespace braid
