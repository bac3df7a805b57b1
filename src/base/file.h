// Mapped files, bounded whole-file reads, and writes that never leave a partial file visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// A read-only mapping, or a copy in memory where the file system maps none. Empty files map to an
// empty span. Move-only.
class MappedFile {
 public:
  // Throws InputError naming the path, also for a Git LFS pointer in place of the file; Error for
  // what the machine lacks, as all readers here do: a disk that fails, memory.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Reads [offset, offset + size) into memory now rather than at first touch. Throws Error naming
  // the path if that fails, for example because the file was cut short, provided the kernel can
  // tell (Linux 5.14). Touching such bytes would kill the process.
  void prefetch(std::uint64_t offset, std::uint64_t size) const;
  // Releases the pages of [offset, offset + size); a later touch reads them again. Best effort.
  void release(std::uint64_t offset, std::uint64_t size) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Reads mapped bytes in and fills the page tables, by a call that can fail: touching bytes that the
// file no longer has, or that the disk cannot read, would kill the process. kUnknown: the kernel
// has no such call (before Linux 5.14). errno tells why not.
enum class Populated { kYes, kNo, kUnknown };
Populated populate_pages(std::span<const std::byte> mapped);
// Gives the pages back; a later touch reads them again.
void drop_pages(std::span<const std::byte> mapped);

// Whether `path` leads to anything, to a folder, to a regular file. Each throws InputError naming
// it if the system does not tell: links in a circle, a name too long, a folder that may not be
// entered.
bool is_there(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);

// The regular files in `folder` and its folders, in the order of their paths. What may not be read
// is left out.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder);

// The whole file as text. Throws InputError if it cannot be read, is larger than `max_bytes` or is
// a Git LFS pointer in place of the file.
std::string read_file(const std::filesystem::path& path, std::uint64_t max_bytes = 256u << 20);

// Everything up to the end, also of a pipe or device. Throws InputError naming `what`, such as "the
// key in a.txt", if it cannot be read or is longer than `max_bytes`.
std::string read_stream(const std::filesystem::path& path, const std::string& what,
                        std::uint64_t max_bytes);
std::string read_stream(int descriptor, const std::string& what, std::uint64_t max_bytes);

// Leaves either the old file or the complete new one at `path`, whatever happens. The new file has
// no name until it is complete, so that even a kill leaves nothing behind. File systems without
// support for that, such as NFS or exFAT, may keep a .braid-XXXXXX beside it. It has the rights of
// the file that it replaces. Links are followed; another name of the old file keeps the old one.
//
// Written into, not replaced, are: what is no regular file (a pipe, /dev/null); what a process has
// open, by its name in /proc (/dev/stdout); and a file that cannot be replaced, as it is a mount
// point or its folder takes no new file. A kill may leave half of the last of these.
// Throws Error naming the path and the system's reason, also for a file that may not be written to.
void write_file(const std::filesystem::path& path, std::string_view contents);

// The same, but leaves what is at `path` alone: returns false then.
bool write_new_file(const std::filesystem::path& path, std::string_view contents);

// Throws the Error that write_file would throw now, except for a full disk. Leaves nothing behind.
void check_can_write(const std::filesystem::path& path);

// Waits until a file's bytes are on its disk. False, with errno, if they may be lost; a file system
// that does not know how to wait has done what it can.
bool sync_to_disk(int descriptor);

// The file that `path` leads to through links, whether or not it is there.
std::filesystem::path file_named(const std::filesystem::path& path);

}  // namespace braid
