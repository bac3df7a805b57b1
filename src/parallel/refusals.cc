#include "parallel/refusals.h"

#include "base/error.h"

namespace braid {

std::string too_few_branches(int cfg, std::int64_t branches) {
  return text_of("cfg ", cfg, " needs as many branches, there ",
                 branches == 1 ? "is 1: give a negative prompt and a true guidance scale above 1"
                               : text_of("are ", branches));
}

std::string too_few_blocks(const Shares& stages, std::int64_t blocks) {
  return text_of("pipeline parallelism ", in_words(stages),
                 " leaves a rank without a block, there are ", blocks);
}

std::string too_few_tokens(const Shares& context, std::string_view kind, std::int64_t tokens) {
  return text_of("ring x ulysses of ", in_words(context), " leaves a rank without ",
                 kind == "image" ? "an " : "a ", kind, " token, there are ", tokens);
}

}  // namespace braid
