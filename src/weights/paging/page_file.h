// Pages on disk. A file's name is derived from what it is made of, so another checkpoint, recipe or
// share cannot be mistaken for it. A file is complete or absent, and every read is verified.
// Processes share the files.
//
// Format: "BRAIDPG2", the two halves of the id, size, bytes per part, checksum of this header,
// checksums of the parts; contents from byte 4096 on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/paging/page_layout.h"

namespace braid {

struct PageId {
  std::uint64_t high, low;
  std::string text() const;  // 32 hexadecimal digits
  bool operator==(const PageId&) const = default;
};

// Hashes a full description of what a page is made of and how.
PageId id_of(std::string_view recipe);

// Open only while being read: there may be more pages than a process may have open files.
class PageFile {
 public:
  static constexpr std::int64_t kHeader = kPageAlignment;  // bytes
  static_assert(kHeader == 4096, "the format has its contents there");

  // Throws InputError unless the file has this id and size, Error if it cannot be read.
  PageFile(const std::filesystem::path& path, PageId id, std::int64_t size,
           DiskReads reads = DiskReads::kAuto);

  // Reads all contents, `into.size()` bytes. Throws Error on a checksum mismatch, removes the file,
  // so that the next start rebuilds it, and marks its folder: what damaged one page may have
  // damaged others.
  void read(std::span<std::byte> into) const;

  // Reads all contents to compare their checksums. Removes a damaged file.
  bool is_sound_or_removed() const;

  const PageId& id() const { return id_; }

 private:
  struct Damaged;
  void read_part(const FileReader& reader, std::size_t part, std::span<std::byte> into) const;
  void read_parts(std::span<std::byte> into) const;
  void remove() const;

  std::filesystem::path path_;
  PageId id_;
  DiskReads reads_;
  std::int64_t size_;
  std::int64_t part_bytes_ = 0;
  std::vector<std::uint64_t> checksums_;  // of the parts
};

class PageFolder {
 public:
  // Creates the folder if it does not exist. A relative one stays where it is now.
  explicit PageFolder(const std::filesystem::path& folder, DiskReads reads = DiskReads::kAuto);

  // The file with this id if it exists and its header is complete, otherwise nullptr. Verifies the
  // contents of files that were there when a damaged one was found, once: one failing run mends
  // all. Throws Error naming the file if it exists but cannot be read.
  std::shared_ptr<const PageFile> find(PageId id, std::int64_t size) const;

  // Writes a new file. `page` has kHeader bytes of room before the contents, which are overwritten.
  // Throws Error naming the file and the reason if writing fails.
  std::shared_ptr<const PageFile> put(std::span<std::byte> page, PageId id) const;

 private:
  std::filesystem::path path_of(PageId id) const;
  bool is_suspect(const std::filesystem::path& page) const;

  std::filesystem::path folder_;
  DiskReads reads_;
};

}  // namespace braid
