#include "net/enhancer/answer_store.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/file.h"

namespace braid::net {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostKeptBytes = 1 << 20;

void make_room(const fs::path& folder, std::size_t most) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) files.emplace_back(entry.last_write_time(), entry.path());
  std::ranges::sort(files);
  for (std::size_t i = 0; i + most < files.size(); ++i) fs::remove(files[i].second);
}

std::optional<std::string> find_in(const fs::path& folder, const std::string& key) {
  try {
    const auto file = folder / key;
    if (!is_file(file)) return {};
    auto answer = read_file(file, kMostKeptBytes);
    std::error_code ignored;  // another's folder may be read only
    fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);
    return answer;
  } catch (const std::exception&) {
    return {};
  }
}

void keep_in(const fs::path& folder, std::size_t most, const std::string& key,
             const std::string& answer) {
  if (answer.size() > kMostKeptBytes) return;
  try {
    if (fs::create_directories(folder)) fs::permissions(folder, fs::perms::owner_all);
    write_file(folder / key, answer);
    make_room(folder, most);
  } catch (const std::exception&) {  // a full disk, a home that is read only
  }
}

}  // namespace

AnswerStore answers_in_folder(const fs::path& folder, std::size_t most) {
  if (folder.empty()) return {};
  return {
      .find = [folder](const std::string& key) { return find_in(folder, key); },
      .keep = [folder, most](const std::string& key,
                             const std::string& answer) { keep_in(folder, most, key, answer); }};
}

AnswerStore answers_in_memory(std::size_t most) {
  struct Kept {
    std::mutex mutex;
    std::deque<std::pair<std::string, std::string>> answers;  // the newest first
  };
  const auto kept = std::make_shared<Kept>();
  const auto find = [kept](const std::string& key) -> std::optional<std::string> {
    const std::scoped_lock lock(kept->mutex);
    for (const auto& [known, answer] : kept->answers)
      if (known == key) return answer;
    return {};
  };
  const auto keep = [kept, most](const std::string& key, const std::string& answer) {
    const std::scoped_lock lock(kept->mutex);
    kept->answers.emplace_front(key, answer);
    if (kept->answers.size() > most) kept->answers.pop_back();
  };
  return {.find = find, .keep = keep};
}

fs::path answer_folder() { return cache_folder("enhanced"); }

}  // namespace braid::net
