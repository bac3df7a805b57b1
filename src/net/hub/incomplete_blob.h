// A file on its way into the cache: its bytes are hashed while they arrive, and it gets its name
// only once size and hash are right.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include "base/sha1.h"
#include "base/sha256.h"
#include "net/hub/hub_reader.h"

namespace braid::net {

// The hash that an etag is: SHA-256, or git's SHA-1 of a file of this size.
class BlobHash {
 public:
  explicit BlobHash(const HubFile& file);
  void add(std::string_view bytes);
  std::string hex();

 private:
  std::variant<Sha256, Sha1> digest_;
};

// The hash of a file that is here. Throws Error naming it.
std::string hash_of_file(const std::filesystem::path& path, const HubFile& file);

class IncompleteBlob {
 public:
  // Opens what is there, and hashes it. Throws Error naming the path.
  IncompleteBlob(const std::filesystem::path& path, const HubFile& file);
  IncompleteBlob(const IncompleteBlob&) = delete;
  IncompleteBlob& operator=(const IncompleteBlob&) = delete;
  ~IncompleteBlob();

  std::uint64_t size() const { return size_; }
  // Throws Error: a full disk, more bytes than the file has.
  void add(std::string_view bytes);
  void restart();  // forgets what is there
  // Whether size and hash are right. Ends the hash: call it once after the last bytes.
  bool is_right();
  // Gives it its name, once it is on the disk. Throws Error naming the path.
  void become(const std::filesystem::path& blob);
  void remove();

 private:
  void require_written(bool is_written) const;

  std::filesystem::path path_;
  HubFile file_;
  int fd_;
  std::uint64_t size_ = 0;
  BlobHash hash_;
};

}  // namespace braid::net
