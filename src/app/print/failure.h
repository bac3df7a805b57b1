// What a person hears when something went wrong, and what the shell sees.
#pragma once

#include <string>

namespace braid {

enum ExitCode {
  kSuccess = 0,
  kFailed = 1,       // while running
  kBadInput = 2,     // a flag, a file, a prompt
  kSignalled = 128,  // plus the number of the signal, as shells have it
};

struct Failure {
  int exit_code;
  std::string sentence;  // one line
  std::string details;   // where it arose, as far as is known; may be empty
  bool is_told_by_first_rank = false;
};

// The exception that is being handled. Call it in a catch block.
Failure current_failure();

}  // namespace braid
