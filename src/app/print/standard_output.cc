#include "app/print/standard_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.h"

namespace braid {
namespace {

// A parent may have left a pipe or a terminal that does not block: a reader has to catch up first.
bool waits_for_reader() {
  if (errno != EAGAIN) return false;
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, /*timeout=*/-1) >= 0 || errno == EINTR;
}

}  // namespace

void print(std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && (errno == EINTR || waits_for_reader())) continue;
    check(n >= 0, "cannot write to standard output: ", std::strerror(errno));
    text.remove_prefix(std::size_t(n));
  }
}

void protect_standard_files() {
  // writing then fails with a reason
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest free number
  }
}

}  // namespace braid
