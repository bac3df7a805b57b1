// The program that users start. It links no LibTorch: it answers --version at once, sets what must
// stand in the environment before LibTorch is loaded, and becomes the engine.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

namespace {

namespace fs = std::filesystem;

// Threads that wait for each other sleep instead of spinning. Where the cores are shared with other
// work a spinning thread takes the time of the one it waits for: the bundled model's picture took
// ten times as long. On idle cores sleeping costs it a few hundredths of a second.
void set_environment() {
  const bool is_chosen = std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT");
  if (!is_chosen) ::setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/1);
  // LibTorch warns of what is no user's business: names of hosts that have none, say.
  ::setenv("TORCH_CPP_LOG_LEVEL", "ERROR", /*overwrite=*/0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0)
    return std::puts("braid " BRAID_VERSION) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
  std::error_code failure;
  const auto self = fs::read_symlink("/proc/self/exe", failure);
  const auto engine = self.parent_path() / "braid-engine";
  set_environment();
  ::execv(engine.c_str(), argv);
  std::fprintf(stderr, "braid: cannot start %s: %s\n", engine.c_str(), std::strerror(errno));
  return 1;
}
