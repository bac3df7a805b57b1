// The exit codes that the shell sees.
#pragma once

namespace braid {

enum ExitCode {
  kSuccess = 0,
  kFailed = 1,       // while running
  kBadInput = 2,     // a flag, a file, a prompt
  kSignalled = 128,  // plus the signal's number, as in shells
};

}  // namespace braid
