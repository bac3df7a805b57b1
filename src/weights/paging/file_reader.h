// Reads a file into memory, from the system's page cache or bypassing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/file.h"
#include "base/file_descriptor.h"
#include "braid/memory.h"

namespace braid {

class FileReader {
 public:
  static constexpr std::int64_t kBlock = 4096;  // of a disk; direct reads are multiples of it

  // Throws Error naming the path if it cannot be opened or is not a file.
  FileReader(const std::filesystem::path& path, DiskReads how);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Whether all of `into` was read: false at end of file or on a disk error. Falls back to plain
  // reads where the file system or the alignment of `into` does not allow the requested kind.
  // Thread-safe.
  bool read(std::int64_t offset, std::span<std::byte> into) const;

  std::int64_t size() const { return size_; }  // when the file was opened

 private:
  bool is_cached(std::int64_t offset, std::int64_t size) const;
  Populated read_mapped(std::int64_t offset, std::span<std::byte> into) const;

  DiskReads how_;
  FileDescriptor file_, direct_;  // direct_ is not open: no direct reads here
  std::int64_t size_ = 0;
  std::byte* mapping_ = nullptr;
};

}  // namespace braid
