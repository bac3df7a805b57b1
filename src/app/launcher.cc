// The program that users start. It links no LibTorch: it answers --version at once, sets what must
// be in the environment before LibTorch is loaded, and becomes the engine.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "app/machine/environment.h"

namespace {

int print_version() {
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe then fails with a reason
  if (std::puts("braid " BRAID_VERSION) >= 0 && std::fflush(stdout) == 0) return 0;
  std::fprintf(stderr, "braid: cannot write to standard output: %s\n", std::strerror(errno));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool asks_for_version =
      argc == 2 && (std::strcmp(argv[1], "--version") == 0 || std::strcmp(argv[1], "-V") == 0);
  if (asks_for_version) return print_version();
  std::error_code failure;
  (void)std::filesystem::current_path(failure);
  if (failure) {  // MKL would end LibTorch's loading, and call its file missing
    std::fprintf(stderr, "braid: cannot find the current folder: %s; start in one that exists\n",
                 failure.message().c_str());
    return 2;
  }
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) {  // an engine in the current folder may be anybody's
    std::fprintf(stderr, "braid: cannot read /proc/self/exe, which says where braid is: %s\n",
                 failure.message().c_str());
    return 1;
  }
  const auto engine = self.parent_path() / "braid-engine";
  braid::set_environment(braid::wanted_environment_here());
  ::execv(engine.c_str(), argv);
  std::fprintf(stderr, "braid: cannot start %s: %s\n", engine.c_str(), std::strerror(errno));
  return 1;
}
