// Peak resident memory over a stretch of the program's life, as counted by Linux.
#pragma once

#include <cstdint>
#include <filesystem>

namespace braid {

class MemoryMeter {
 public:
  explicit MemoryMeter(std::filesystem::path process = "/proc/self");

  // Peak bytes since the last call, or since the program started. If the kernel does not allow
  // resetting the peak, the bytes resident now; 0 if even that is unknown.
  std::uint64_t take();
  bool is_exact() const { return is_exact_; }

 private:
  std::filesystem::path process_;
  bool is_exact_;
};

}  // namespace braid
