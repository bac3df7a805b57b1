// Builds a tokenizer from the contents of its files, without a disk, deciding as transformers'
// classes do.
#pragma once

#include "text/tokenizer_files.h"

namespace braid {

// Throws InputError naming the file. See load_tokenizer() for precedence.
std::unique_ptr<const Tokenizer> build_tokenizer(const TokenizerFiles& files);

}  // namespace braid
