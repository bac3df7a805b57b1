// A repository in Hugging Face's cache, as huggingface_hub lays it out:
//   blobs/ETAG                      the contents, under the hash that names them
//   blobs/ETAG.incomplete           what has arrived so far
//   snapshots/COMMIT/PATH           links to blobs
//   refs/REVISION                   the commit that a branch or tag stands for
//   ../.locks/REPOSITORY/ETAG.lock  held by the process that writes the blob
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "net/hub/hub_reader.h"

namespace braid::net {

// A lock between processes on a file that is created for it; held until destroyed.
class FileLock {
 public:
  // Waits until it is free; `when_taken` is called once if it is not. Throws Cancelled, and Error
  // naming the path. File systems without locks grant it to everybody.
  FileLock(const std::filesystem::path& path, const std::stop_token& stop,
           const std::function<void()>& when_taken);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int fd_;
};

class CachedRepository {
 public:
  // kNone: no file system needs to lack links for a test of it. Otherwise it is tried.
  enum class Links { kSymbolic, kNone };

  CachedRepository(const std::filesystem::path& cache, const std::string& repository,
                   Links links = Links::kSymbolic);

  std::filesystem::path blob(const HubFile& file) const;
  std::filesystem::path incomplete(const HubFile& file) const;
  std::filesystem::path lock(const HubFile& file) const;
  std::filesystem::path snapshot(const std::string& commit) const;
  // Where the contents of the file are, at their full size; empty if they are not here. Where links
  // are not possible, they are in the snapshot itself.
  std::filesystem::path contents(const HubFile& file, const std::string& commit) const;
  std::uint64_t bytes_here(const HubFile& file, const std::string& commit) const;
  std::uint64_t free_bytes() const;  // of the file system

  // Creates the folders. Throws Error naming the path.
  void prepare() const;
  // Puts files, whose contents are here, into the snapshot, in their order: as links to blobs, or,
  // where the file system has none, as copies, for whose sake no blob stays. Several may have the
  // same contents. Writes nothing if all are there; several processes may publish the same files at
  // once. Throws Error naming the path, and Cancelled where it waits for another one's copy.
  void publish(const std::vector<HubFile>& files, const std::string& commit,
               const std::stop_token& stop = {}) const;
  // Writes nothing if the ref names this commit already.
  void write_ref(const std::string& revision, const std::string& commit) const;

 private:
  std::filesystem::path source(const HubFile& file, const std::vector<HubFile>& files,
                               const std::string& commit) const;
  enum class Placed { kAsItWas, kAsLink, kAsCopy };
  Placed place(const HubFile& file, const std::filesystem::path& from, const std::string& commit,
               const std::stop_token& stop) const;

  std::filesystem::path folder_, locks_;
  Links links_;
};

}  // namespace braid::net
