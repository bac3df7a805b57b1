// A GPU's architecture, memory and name, as its driver reports them, whatever the LibTorch build.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid {

struct Gpu {
  std::string architecture;  // "gfx1101", "sm_89"
  std::uint64_t bytes;       // of its memory
  std::string uuid = {};     // as ROCR_VISIBLE_DEVICES names AMD's: "GPU-0123456789abcdef"
  std::string name = {};     // "NVIDIA GeForce RTX 4090"; empty if unknown, and for AMD's
};

// The GPUs a program may use, in LibTorch's order: NVIDIA's if there are any, else AMD's.
std::vector<Gpu> find_gpus();

// The GPU behind "cuda" or "cuda:1"; nothing for the CPU and for numbers out of range.
std::optional<Gpu> gpu_named(const std::string& device, const std::vector<Gpu>& gpus);
std::optional<Gpu> gpu_named(const std::string& device);  // of find_gpus()

// Whether LibTorch multiplies 8-bit integers there (`_int_mm`). On AMD that is hipBLASLt, which has
// such products for CDNA from the MI200 on, and for no RDNA.
bool multiplies_int8(const std::string& architecture);

// The first compute capability whose tensor cores multiply 8-bit floats, and whether LibTorch
// multiplies them there (`_scaled_mm`): on NVIDIA's alone.
constexpr int kFirstWithFloat8 = 89;
bool multiplies_float8(const std::string& architecture);

// `all` as selected and ordered by a list such as ROCR_VISIBLE_DEVICES=1,GPU-0123456789abcdef; up
// to the first entry that is not the number or uuid of one. Null: all of them.
std::vector<Gpu> visible(const std::vector<Gpu>& all, const char* list);

}  // namespace braid
