// Pages on a disk. A file is named by its contents, so that another checkpoint, recipe or layer can
// not be mistaken for it; it is whole or not there; every read of it is checked. Processes share
// them.
//
//   "BRAIDPG1", the two halves of its id, size, bytes a part, checksum of this header, checksums of
//   the parts; from byte 4096 on the contents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace braid {

struct PageId {
  std::uint64_t high, low;
  std::string text() const;  // 32 hexadecimal digits
  bool operator==(const PageId&) const = default;
};

class PageFile {
 public:
  static constexpr std::int64_t kHeader = 4096;  // bytes

  // Throws InputError unless the file has the id and the size.
  PageFile(const std::filesystem::path& path, PageId id, std::int64_t size);
  ~PageFile();
  PageFile(const PageFile&) = delete;
  PageFile& operator=(const PageFile&) = delete;

  // All of the contents, `into.size()` bytes; past the system's cache where the disk and the
  // alignment of `into` allow it. Throws Error when they are not what the id says: the file is then
  // removed, to be made anew by the next start.
  void read(std::span<std::byte> into) const;

  const PageId& id() const { return id_; }

 private:
  void read_part(std::size_t part, std::span<std::byte> into) const;
  void refuse(const std::string& fact) const;

  std::filesystem::path path_;
  PageId id_;
  int fd_ = -1, direct_fd_ = -1;  // direct_fd_ < 0: the file system has no direct reads
  std::int64_t part_bytes_ = 0;
  std::vector<std::uint64_t> checksums_;  // of the parts
};

class PageFolder {
 public:
  explicit PageFolder(std::filesystem::path folder);  // made if it is not there

  // The file of these contents: the one that is there, or a new one. `page` has kHeader bytes of
  // room before the contents, which are overwritten. `recipe` says what the contents mean. Throws
  // Error naming the file and the reason when it cannot be written.
  std::shared_ptr<const PageFile> put(std::span<std::byte> page, const std::string& recipe) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace braid
