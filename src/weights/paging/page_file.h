// Pages on a disk. A file is named by what it is made of, so that another checkpoint, recipe or
// share can not be mistaken for it; it is whole or not there; every read of it is checked.
// Processes share them.
//
//   "BRAIDPG2", the two halves of its id, size, bytes a part, checksum of this header, checksums of
//   the parts; from byte 4096 on the contents.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/paging/file_reader.h"

namespace braid {

struct PageId {
  std::uint64_t high, low;
  std::string text() const;  // 32 hexadecimal digits
  bool operator==(const PageId&) const = default;
};

// Of what a page is made of and how, in words that say all of it.
PageId id_of(std::string_view recipe);

// Open only while it is read: there may be more pages than a process may have open files.
class PageFile {
 public:
  static constexpr std::int64_t kHeader = 4096;  // bytes

  // Throws InputError unless the file has the id and the size, Error when it cannot be read.
  PageFile(const std::filesystem::path& path, PageId id, std::int64_t size,
           DiskReads reads = DiskReads::kAuto);

  // All of the contents, `into.size()` bytes. Throws Error when they do not have their checksums:
  // the file is then removed, to be made anew by the next start.
  void read(std::span<std::byte> into) const;

  const PageId& id() const { return id_; }

 private:
  void read_part(const FileReader& reader, std::size_t part, std::span<std::byte> into) const;
  void refuse(const std::string& fact) const;

  std::filesystem::path path_;
  PageId id_;
  DiskReads reads_;
  std::int64_t part_bytes_ = 0;
  std::vector<std::uint64_t> checksums_;  // of the parts
};

class PageFolder {
 public:
  // Made if it is not there.
  explicit PageFolder(std::filesystem::path folder, DiskReads reads = DiskReads::kAuto);

  // The file of this id, if it is there and its header is whole. Throws Error naming the file when
  // it is there and cannot be read.
  std::shared_ptr<const PageFile> find(PageId id, std::int64_t size) const;

  // A new one. `page` has kHeader bytes of room before the contents, which are overwritten. Throws
  // Error naming the file and the reason when it cannot be written.
  std::shared_ptr<const PageFile> put(std::span<std::byte> page, PageId id) const;

 private:
  std::filesystem::path path_of(PageId id) const;

  std::filesystem::path folder_;
  DiskReads reads_;
};

}  // namespace braid
