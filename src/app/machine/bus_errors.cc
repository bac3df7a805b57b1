#include "app/machine/bus_errors.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>

#include "app/machine/exit_codes.h"

namespace braid {
namespace {

// Calls only what a signal handler may call.

std::uintptr_t read_hexadecimal(const char*& text) {
  std::uintptr_t number = 0;
  for (;; ++text) {
    if (*text >= '0' && *text <= '9')
      number = number * 16 + std::uintptr_t(*text - '0');
    else if (*text >= 'a' && *text <= 'f')
      number = number * 16 + std::uintptr_t(*text - 'a' + 10);
    else
      return number;
  }
}

// If `at` lies in the range of a line of /proc/self/maps, "begin-end rwxp offset device inode
// path", the line's file; else null.
const char* file_in(const char* line, std::uintptr_t at) {
  const auto begin = read_hexadecimal(line);
  if (*line++ != '-') return nullptr;
  const auto end = read_hexadecimal(line);
  return begin <= at && at < end ? std::strchr(line, '/') : nullptr;
}

// Reads the next line into `line`, dropping what does not fit; false after the last.
bool next_line(int fd, char* line, std::size_t size) {
  std::size_t length = 0;
  char c = 0;
  bool is_some = false;
  while (::read(fd, &c, 1) == 1 && c != '\n') {
    is_some = true;
    if (length + 1 < size) line[length++] = c;
  }
  line[length] = 0;
  return is_some || c == '\n';
}

void say(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

void explain(int, siginfo_t* signal, void*) {
  static char line[4096 + 128];
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  while (maps >= 0 && next_line(maps, line, sizeof line)) {
    const char* const file = file_in(line, reinterpret_cast<std::uintptr_t>(signal->si_addr));
    if (!file) continue;
    say("braid: ");
    say(file);
    say(" was cut short while it was in use, or its disk cannot read it\n");
    ::_exit(kFailed);
  }
  ::raise(SIGBUS);  // not ours: as without a handler
}

}  // namespace

void explain_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = explain;
  action.sa_flags = SA_SIGINFO | int(SA_RESETHAND);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace braid
