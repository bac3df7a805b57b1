// Brings files of a repository into Hugging Face's cache, several at once. Nothing in the cache
// names a file before its size and hash are right, and no snapshot names files before all that were
// asked for are here.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "net/hub/cached_repository.h"

namespace braid::net {

struct PullOptions {
  HubAccess access = {};
  HubName name = {};
  int workers = 4;          // files at once
  bool checks_all = false;  // also hashes what was here before
  Patience patience = {};
};

struct PullProgress {
  int files = 0, num_files = 0;            // complete, in all
  std::uint64_t bytes = 0, num_bytes = 0;  // here, in all
  std::uint64_t received = 0;              // of them by this run
};

struct PullHooks {
  // Both are called by one thread at a time.
  std::function<void(const PullProgress&)> progress = {};
  std::function<void(const std::string&)> say = {};
  std::stop_token stop = {};
};

class Pull {
 public:
  // Asks for the list of files. Throws as HubReader does; InputError if the network is forbidden.
  Pull(PullOptions options, PullHooks hooks);
  Pull(const Pull&) = delete;
  Pull& operator=(const Pull&) = delete;

  const HubListing& listing() const { return listing_; }
  std::filesystem::path snapshot() const { return repository_.snapshot(listing_.commit); }

  // Sizes and hashes of these files, as the hub has them.
  std::vector<HubFile> describe(const std::vector<std::string>& paths);
  std::uint64_t bytes_missing(const std::vector<HubFile>& files) const;
  // Those of them that are here with another hash; files of the same contents are named once. Reads
  // all that is here.
  std::vector<HubFile> damaged(const std::vector<HubFile>& files);
  // Throws Error if the disk has too little space for what is missing.
  void check_space(const std::vector<HubFile>& files) const;
  // Returns once all are here; writes nothing if they were. On an exception what has arrived is
  // kept for the next run.
  void fetch(const std::vector<HubFile>& files);
  // What fetch() found damaged and loaded again; bytes_missing() counted it as here.
  std::uint64_t bytes_loaded_again() const { return bytes_loaded_again_; }
  // The contents of a small file, which decide what is needed. Writes nothing: fetch() does, and
  // does not ask for them again.
  std::string text_of_file(const std::string& path);
  // Makes these files, which are here, the snapshot of the revision. Files that others begin with,
  // such as model_index.json, come last: a folder without them is no model.
  void publish(std::vector<HubFile> files) const;

 private:
  void in_parallel(std::size_t count, const std::function<void(HubReader&, std::size_t)>& work);
  bool is_here(const HubFile& file) const;
  void fetch_one(HubReader& reader, const HubFile& file);
  void fetch_locked(HubReader& reader, const HubFile& file);
  std::string loaded_text(const HubFile& file);
  void write_blob(const HubFile& file, const std::string& text);
  [[noreturn]] void refuse(const HubFile& file, std::uint64_t size) const;
  void load(HubReader& reader, const HubFile& file);
  void count(std::int64_t bytes, std::uint64_t received);
  void count_file();
  HubReader reader(std::stop_token stop);
  void say(const std::string& sentence);

  PullOptions options_;
  PullHooks hooks_;
  std::mutex mutex_;  // of what workers share: progress and hooks
  std::atomic<std::uint64_t> bytes_loaded_again_ = 0;
  PullProgress progress_;
  HubListing listing_;
  CachedRepository repository_;
  std::map<std::string, std::string> texts_;  // that were read and are not in the cache, by etag
};

}  // namespace braid::net
