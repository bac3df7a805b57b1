// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace braid {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}  // negative: none
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace braid
