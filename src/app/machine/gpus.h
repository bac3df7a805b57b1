// What a GPU is: its architecture and its memory, asked of its driver, so that it can be said
// whichever LibTorch there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

struct Gpu {
  std::string architecture;  // "gfx1101", "sm_89"
  std::uint64_t bytes;       // of its memory
  std::string uuid = {};     // "GPU-0123456789abcdef", as ROCR_VISIBLE_DEVICES names AMD's
};

// Those that a program may use, in the order in which LibTorch numbers them: NVIDIA's, where there
// are some, else AMD's.
std::vector<Gpu> find_gpus();

// That of "cuda" or "cuda:1"; none for the CPU and for numbers that are not there.
std::optional<Gpu> gpu_named(const std::string& device);

// `all` as a list such as ROCR_VISIBLE_DEVICES=1,GPU-0123456789abcdef chooses and orders them; up
// to the first entry that is neither the number nor the uuid of one. Null: all of them.
std::vector<Gpu> visible(const std::vector<Gpu>& all, const char* list);

}  // namespace braid
