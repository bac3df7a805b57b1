// Files that are mapped, read whole with a bound, or written so that nobody sees half of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace braid {

// A read-only mapping. Empty files map to an empty span. Move-only.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws InputError naming the path
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Brings [offset, offset + size) into memory now rather than at first touch. Throws Error naming
  // the path where it cannot be read, as of a file cut short meanwhile, if the kernel can tell
  // (Linux 5.14): to touch it would end the process.
  void prefetch(std::uint64_t offset, std::uint64_t size) const;
  // Gives the pages of [offset, offset + size) back; a later touch reads them again. Best effort.
  void release(std::uint64_t offset, std::uint64_t size) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The whole file as text. Throws InputError when it cannot be read or is larger than `max_bytes`.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = 256u << 20);

// `path` is the old file or the whole new one, whatever happens. The file has no name until it is
// whole, so that not even a kill leaves anything (file systems that cannot do that, such as NFS,
// may keep a .braid-XXXXXX beside it). A link is followed. What exists and is no regular file (a
// pipe, /dev/null) is written to as it is. Throws Error naming the path and the system's reason.
void write_file(const std::filesystem::path& path, std::string_view contents);

// Throws the Error that write_file would throw now, short of a full disk. Leaves nothing behind.
void check_can_write(const std::filesystem::path& path);

}  // namespace braid
