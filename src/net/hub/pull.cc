#include "net/hub/pull.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/readable_bytes.h"
#include "net/hub/incomplete_blob.h"

namespace braid::net {
namespace {

constexpr std::uint64_t kLargestText = 64u << 20;  // bytes of an index or tokenizer

void require_online(const HubAccess& access, const std::string& repository) {
  require(access.offline_by.empty(), access.offline_by, " forbids to ask ",
          host_of_url(access.endpoint), " for ", repository);
}

// Files of the same contents are one blob.
std::vector<HubFile> without_copies(std::vector<HubFile> files) {
  const auto by_etag = [](const HubFile& a, const HubFile& b) { return a.etag < b.etag; };
  std::stable_sort(files.begin(), files.end(), by_etag);
  const auto is_same = [](const HubFile& a, const HubFile& b) { return a.etag == b.etag; };
  files.erase(std::unique(files.begin(), files.end(), is_same), files.end());
  return files;
}

// A commit needs no ref: it is a snapshot's name.
bool is_commit(const std::string& revision, const std::string& commit) {
  return !revision.empty() && commit.starts_with(revision) && revision.size() == commit.size();
}

}  // namespace

Pull::Pull(PullOptions options, PullHooks hooks)
    : options_(std::move(options)),
      hooks_(std::move(hooks)),
      repository_(options_.access.cache, options_.name.repository) {
  require_online(options_.access, options_.name.repository);
  listing_ = reader(hooks_.stop).list(options_.name);
}

HubReader Pull::reader(std::stop_token stop) {
  return {options_.access, options_.patience, std::move(stop),
          [this](const std::string& sentence) { say(sentence); }};
}

void Pull::say(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (hooks_.say) hooks_.say(sentence);
}

// The first exception ends all; those that only follow from it are forgotten.
void Pull::in_parallel(std::size_t count,
                       const std::function<void(HubReader&, std::size_t)>& work) {
  std::stop_source stop;
  const std::stop_callback stop_too(hooks_.stop, [&] { stop.request_stop(); });
  std::atomic<std::size_t> next = 0;
  std::exception_ptr first;
  const auto run = [&] {
    try {
      auto own = reader(stop.get_token());
      for (auto i = next++; i < count && !stop.stop_requested(); i = next++) work(own, i);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!stop.stop_requested()) first = std::current_exception();
      stop.request_stop();
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < std::min(count, std::size_t(options_.workers)); ++i)
    workers.emplace_back(run);
  workers.clear();
  if (hooks_.stop.stop_requested()) throw Cancelled("stopped");
  if (first) std::rethrow_exception(first);
}

std::vector<HubFile> Pull::describe(const std::vector<std::string>& paths) {
  std::vector<HubFile> files(paths.size());
  in_parallel(paths.size(),
              [&](HubReader& own, std::size_t i) { files[i] = own.describe(listing_, paths[i]); });
  return files;
}

std::uint64_t Pull::bytes_missing(const std::vector<HubFile>& files) const {
  std::uint64_t missing = 0;
  for (const auto& file : without_copies(files))
    missing += file.size - repository_.bytes_here(file, listing_.commit);
  return missing;
}

std::vector<HubFile> Pull::damaged(const std::vector<HubFile>& files) {
  const auto each = without_copies(files);
  std::vector<char> is_damaged(each.size());  // not bool: workers write bytes of their own
  in_parallel(each.size(), [&](HubReader&, std::size_t i) {
    const auto here = repository_.contents(each[i], listing_.commit);
    is_damaged[i] = !here.empty() && hash_of_file(here, each[i]) != each[i].etag;
  });
  std::vector<HubFile> found;
  for (std::size_t i = 0; i < each.size(); ++i)
    if (is_damaged[i]) found.push_back(each[i]);
  return found;
}

void Pull::check_space(const std::vector<HubFile>& files) const {
  const auto missing = bytes_missing(files), free = repository_.free_bytes();
  check(missing <= free, options_.access.cache.string(), " has ", readable_bytes(double(free)),
        " of free space, ", readable_bytes(double(missing)), " of ", options_.name.repository,
        " are missing (HF_HUB_CACHE names another folder)");
}

void Pull::count(std::int64_t bytes, std::uint64_t received) {
  const std::lock_guard lock(mutex_);
  progress_.bytes += std::uint64_t(bytes);  // wraps around for what is dropped
  progress_.received += received;
  if (hooks_.progress) hooks_.progress(progress_);
}

void Pull::count_file() {
  const std::lock_guard lock(mutex_);
  ++progress_.files;
  if (hooks_.progress) hooks_.progress(progress_);
}

void Pull::fetch(const std::vector<HubFile>& files) {
  auto largest_first = without_copies(files);
  progress_ = {.num_files = int(largest_first.size())};
  for (const auto& file : largest_first) progress_.num_bytes += file.size;
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const HubFile& a, const HubFile& b) { return a.size > b.size; });
  in_parallel(largest_first.size(),
              [&](HubReader& own, std::size_t i) { fetch_one(own, largest_first[i]); });
}

// Whether it is complete, and right where that is to be checked.
bool Pull::is_here(const HubFile& file) const {
  const auto here = repository_.contents(file, listing_.commit);
  return !here.empty() && (!options_.checks_all || hash_of_file(here, file) == file.etag);
}

// A cache that has the file may be read-only: a lock is taken only to write.
void Pull::fetch_one(HubReader& reader, const HubFile& file) {
  if (is_here(file)) {
    count(std::int64_t(file.size), 0);
  } else {
    repository_.prepare();
    const FileLock lock(repository_.lock(file), reader.stop_token(), [&] {
      say(text_of("waiting for another process that loads ", file.path));
    });
    fetch_locked(reader, file);
  }
  count_file();
}

void Pull::fetch_locked(HubReader& reader, const HubFile& file) {
  if (is_here(file)) return count(std::int64_t(file.size), 0);  // another process was faster
  if (const auto damaged = repository_.contents(file, listing_.commit); !damaged.empty()) {
    say(text_of(file.path, " is damaged, and is loaded again"));
    std::filesystem::remove(damaged);
    bytes_loaded_again_ += file.size;
  }
  if (const auto text = texts_.find(file.etag); text != texts_.end()) {
    write_blob(file, text->second);
  } else {
    load(reader, file);
  }
}

// What text_of_file() read is checked already.
void Pull::write_blob(const HubFile& file, const std::string& text) {
  IncompleteBlob blob(repository_.incomplete(file), file);
  blob.restart();
  blob.add(text);
  blob.become(repository_.blob(file));
  count(std::int64_t(text.size()), text.size());
}

void Pull::refuse(const HubFile& file, std::uint64_t size) const {
  throw Error(text_of(file.path, " of ", options_.name.repository, " arrived with ",
                      size == file.size ? "another hash" : "another size", " than the hub names, ",
                      file.etag, ": nothing of it is kept"));
}

// A file whose first bytes came with an earlier run may be of several sources: it gets a second
// chance from its beginning.
void Pull::load(HubReader& reader, const HubFile& file) {
  IncompleteBlob blob(repository_.incomplete(file), file);
  count(std::int64_t(blob.size()), 0);
  for (bool is_resumed = blob.size() > 0;; is_resumed = false) {
    if (blob.size() < file.size)
      reader.load(
          listing_, file, blob.size(),
          [&](std::uint64_t offset) {
            if (offset == blob.size()) return;
            count(-std::int64_t(blob.size()), 0);
            blob.restart();
            is_resumed = false;
          },
          [&](std::string_view bytes) {
            blob.add(bytes);
            count(std::int64_t(bytes.size()), bytes.size());
          });
    if (blob.is_right()) return blob.become(repository_.blob(file));
    if (!is_resumed) break;
    count(-std::int64_t(blob.size()), 0);
    blob.restart();
  }
  blob.remove();
  refuse(file, blob.size());
}

std::string Pull::text_of_file(const std::string& path) {
  const auto files = describe({path});
  check(files.front().size <= kLargestText, path, " has ", files.front().size, " bytes, at most ",
        kLargestText, " were expected");
  const auto& file = files.front();
  if (is_here(file)) return read_file(repository_.contents(file, listing_.commit), kLargestText);
  if (!texts_.contains(file.etag)) texts_[file.etag] = loaded_text(file);
  return texts_[file.etag];
}

std::string Pull::loaded_text(const HubFile& file) {
  std::string text;
  reader(hooks_.stop)
      .load(
          listing_, file, 0, [&](std::uint64_t offset) { text.resize(offset); },
          [&](std::string_view bytes) {
            text += bytes;
            if (text.size() > file.size) refuse(file, text.size());
          });
  BlobHash hash(file);
  hash.add(text);
  if (text.size() != file.size || hash.hex() != file.etag) refuse(file, text.size());
  return text;
}

void Pull::publish(std::vector<HubFile> files) const {
  const auto depth = [](const HubFile& file) {
    return std::count(file.path.begin(), file.path.end(), '/');
  };
  std::stable_sort(files.begin(), files.end(),
                   [&](const HubFile& a, const HubFile& b) { return depth(a) > depth(b); });
  std::stable_partition(files.begin(), files.end(), [](const HubFile& file) {
    return file.path != "model_index.json" && file.path != "modular_model_index.json";
  });
  repository_.publish(files, listing_.commit, hooks_.stop);
  const auto& revision = options_.name.revision;
  if (!is_commit(revision, listing_.commit))
    repository_.write_ref(revision.empty() ? "main" : revision, listing_.commit);
}

}  // namespace braid::net
