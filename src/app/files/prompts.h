// Prompts, from the command line or a file.
#pragma once

#include <string>
#include <vector>

#include "app/flags/flags.h"

namespace braid {

// One prompt per line; lines without a visible character are skipped, and carriage returns and a
// byte order mark are dropped. `path` "-" is standard input. Throws InputError, with the line's
// number, for a file that cannot be read, is larger than 64 MiB, has no prompt, or has one that
// check_text refuses.
std::vector<std::string> read_prompt_file(const std::string& path);

// Throws InputError beginning with `name` unless `text` is UTF-8 without NUL of at most 100 kB.
void check_text(const std::string& name, const std::string& text);

// The request with its prompts, all texts checked.
Request with_prompts(const GenerateFlags& flags);

}  // namespace braid
