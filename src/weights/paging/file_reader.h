// Reads of a file into memory, past the system's cache or out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "braid/memory.h"

namespace braid {

class FileReader {
 public:
  static constexpr std::int64_t kBlock = 4096;  // of a disk: what direct reads are multiples of

  // Throws Error naming the path when it cannot be opened or is no file.
  FileReader(const std::filesystem::path& path, DiskReads how);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Whether all of `into` was read: false at the end of the file or at an error of the disk. Where
  // the file system or the alignment of `into` has no reads of the kind that was asked for, plain
  // ones take their place. For several threads.
  bool read(std::int64_t offset, std::span<std::byte> into) const;

  std::int64_t size() const { return size_; }  // of the file as it was opened

 private:
  enum class Mapped { kYes, kNo, kUnknown };  // kUnknown: this system does not tell in time

  bool is_cached(std::int64_t offset, std::int64_t size) const;
  Mapped read_mapped(std::int64_t offset, std::span<std::byte> into) const;

  DiskReads how_;
  int fd_ = -1, direct_fd_ = -1;  // direct_fd_ < 0: the file system has no direct reads
  std::int64_t size_ = 0;
  std::byte* mapping_ = nullptr;
};

}  // namespace braid
