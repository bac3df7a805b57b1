// What a person reads when something went wrong, and the exit code the shell sees.
#pragma once

#include <string>

namespace braid {

enum ExitCode {
  kSuccess = 0,
  kFailed = 1,       // while running
  kBadInput = 2,     // a flag, a file, a prompt
  kSignalled = 128,  // plus the signal's number, as in shells
};

struct Failure {
  int exit_code;
  std::string sentence;  // one line
  std::string details;   // where it arose, as far as known; may be empty
  bool is_told_by_first_rank = false;
};

// Describes the exception being handled. Call it in a catch block.
Failure current_failure();

}  // namespace braid
