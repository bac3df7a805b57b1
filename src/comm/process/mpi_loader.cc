#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "comm/process/mpi_module.h"
#include "comm/process/rendezvous.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Next to the program or this code's library, or in the library folder of an installed tree.
std::vector<fs::path> places() {
  Dl_info self{};
  ::dladdr(reinterpret_cast<const void*>(&places), &self);
  std::error_code failure;
  std::vector<fs::path> found;
  for (const auto& file : {fs::path(self.dli_fname ? self.dli_fname : ""),
                           fs::read_symlink("/proc/self/exe", failure)}) {
    const auto folder = fs::absolute(file, failure).parent_path();
    found.insert(found.end(), {folder, folder / "../lib/braid", folder / "braid"});
  }
  return found;
}

void* load_module() {
  std::string why;
  for (const auto& place : places()) {
    const auto path = place / kMpiModule;
    std::error_code failure;
    if (!fs::exists(path, failure)) continue;
    // Open MPI loads its own components, which need its symbols.
    if (void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return module;
    why = ::dlerror();
  }
  throw InputError(why.empty() ? "this build of Braid has no MPI, which mpirun needs: install "
                                 "libopenmpi-dev and build again, or use torchrun or srun"
                               : "the MPI module cannot be loaded: " + why);
}

}  // namespace

std::unique_ptr<Wire> meet_over_mpi(const Launch& launch) {
  auto* const open = reinterpret_cast<OpenMpiWire*>(::dlsym(load_module(), kOpenMpiWire));
  check(open != nullptr, kMpiModule, " is not the module of this version of Braid");
  std::array<char, 512> why{};
  std::unique_ptr<Wire> wire(open(why.data(), why.size()));
  check(wire != nullptr, "MPI cannot be started: ", why.data());
  require(wire->size() == launch.size && wire->rank() == launch.rank, launch.launcher, " started ",
          launch.size, " ranks, but MPI knows of ", wire->size(),
          ": Braid was built with another MPI than that of this ", launch.launcher);
  return wire;
}

}  // namespace braid
