#include "comm/device/nccl.h"

#include <dlfcn.h>

namespace braid {
namespace {

template <class Function>
bool take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::optional<Nccl> nccl_in(void* library) {
  Nccl nccl;
  const bool has_all =
      take(library, "ncclGetVersion", nccl.get_version) &&
      take(library, "ncclGetErrorString", nccl.get_error_string) &&
      take(library, "ncclGetLastError", nccl.get_last_error) &&
      take(library, "ncclGetUniqueId", nccl.get_unique_id) &&
      take(library, "ncclCommInitRankConfig", nccl.comm_init_rank_config) &&
      take(library, "ncclCommGetAsyncError", nccl.comm_get_async_error) &&
      take(library, "ncclCommAbort", nccl.comm_abort) &&
      take(library, "ncclGroupStart", nccl.group_start) &&
      take(library, "ncclGroupEnd", nccl.group_end) && take(library, "ncclSend", nccl.send) &&
      take(library, "ncclRecv", nccl.recv) && take(library, "ncclAllReduce", nccl.all_reduce);
  return has_all ? std::optional(nccl) : std::nullopt;
}

std::optional<Nccl> loaded_nccl() {
  for (const auto* const name : {"libnccl.so.2", "librccl.so.1"})
    if (auto* const library = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return nccl_in(library);
  return nccl_in(RTLD_DEFAULT);
}

}  // namespace braid
