// The functions of NCCL that are used here, declared without its headers, which an unpacked
// LibTorch does not have, and taken from the library that LibTorch has loaded: never a second copy
// or another version. RCCL has the same names.
#pragma once

#include <cstddef>
#include <optional>

namespace braid {

struct Nccl {
  // These types repeat nccl.h, whose layouts are fixed: the library reads no more of a
  // configuration than its size says, and of one that claims to be of 2.14 no more than `blocking`.
  struct Communicator;
  struct Id {
    char bytes[128];
  };
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef, version = 21400;
    int blocking = 0;
    int unused = 0;
  };
  static constexpr int kSuccess = 0, kInProgress = 7;  // ncclResult_t
  // ncclDataType_t and ncclRedOp_t
  static constexpr int kInt8 = 0, kUint8 = 1, kInt32 = 2, kInt64 = 4, kFloat16 = 6, kFloat32 = 7,
                       kFloat64 = 8, kBfloat16 = 9;
  static constexpr int kSum = 0;

  int (*get_version)(int* version) = nullptr;
  const char* (*get_error_string)(int code) = nullptr;
  const char* (*get_last_error)(Communicator*) = nullptr;
  int (*get_unique_id)(Id* id) = nullptr;
  int (*comm_init_rank_config)(Communicator**, int size, Id id, int rank, Config*) = nullptr;
  int (*comm_get_async_error)(Communicator*, int* code) = nullptr;
  int (*comm_abort)(Communicator*) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*send)(const void*, std::size_t count, int type, int peer, Communicator*,
              void* stream) = nullptr;
  int (*recv)(void*, std::size_t count, int type, int peer, Communicator*, void* stream) = nullptr;
  int (*all_reduce)(const void*, void* sum, std::size_t count, int type, int operation,
                    Communicator*, void* stream) = nullptr;
};

// Looks the functions up in a library that dlopen() returned; there is no result unless it has all.
std::optional<Nccl> nccl_in(void* library);

// Looks them up in libnccl.so.2 or librccl.so.1 if this process has loaded it, or in a LibTorch
// that contains it.
std::optional<Nccl> loaded_nccl();

}  // namespace braid
