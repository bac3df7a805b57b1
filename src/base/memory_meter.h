// The most memory that was resident in some stretch of the program's life, as Linux counts it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace braid {

class MemoryMeter {
 public:
  explicit MemoryMeter(std::filesystem::path process = "/proc/self");

  // Bytes: the peak since the last call, or since the start of the program. Where the kernel does
  // not let the peak be reset, what is resident now. 0 where it does not even tell that.
  std::uint64_t take();
  bool is_exact() const { return is_exact_; }

 private:
  std::filesystem::path process_;
  bool is_exact_;
};

}  // namespace braid
