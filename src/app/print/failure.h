// What a person reads when something went wrong, with its exit code.
#pragma once

#include <string>
#include <string_view>

#include "app/machine/exit_codes.h"

namespace braid {

struct Failure {
  int exit_code;
  std::string sentence;  // one line
  std::string details;   // where it arose, as far as known; may be empty
  bool is_told_by_first_rank = false;
};

// The library's sentences name options by their fields (`vae_file`); those for people name the
// flags
// (--vae-file).
std::string with_flags(std::string sentence);
// The same for one field, `boxes` in backquotes, say, and what the user calls it.
std::string with_name(std::string sentence, std::string_view field, const std::string& name);

// Describes the exception being handled. Call it in a catch block. Its advice names flags of
// `command`: "serve"; without one, as for clients of a server, it names none.
Failure current_failure(const std::string& command = "");

}  // namespace braid
