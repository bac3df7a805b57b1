#include "base/hub_cache.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/ascii.h"
#include "base/cache_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder_entries.h"
#include "base/hexadecimal.h"
#include "base/text_stream.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderPrefix = "models--", kBetween = "--";
constexpr std::string_view kSnapshots = "snapshots", kRefs = "refs", kMain = "main";

std::string variable(const char* name) {
  const auto* const value = std::getenv(name);
  return value ? value : "";
}

struct Reference {
  std::string name;
  std::size_t end;  // where the text goes on
};

// The "$NAME" or "${NAME}" that begins at `dollar`; its name is empty if there is none.
Reference reference_at(const std::string& text, std::size_t dollar) {
  constexpr std::string_view kOfNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  const auto begin = dollar + 1;
  if (begin == text.size() || text[begin] != '{') {
    const auto end = std::min(text.find_first_not_of(kOfNames, begin), text.size());
    return {.name = text.substr(begin, end - begin), .end = end};
  }
  const auto close = text.find('}', begin);
  if (close == text.npos) return {.name = "", .end = begin};
  return {.name = text.substr(begin + 1, close - begin - 1), .end = close + 1};
}

// Like Python's expandvars: unknown variables stay as they are, values are not expanded again.
std::string with_variables(const std::string& text) {
  std::string expanded;
  for (std::size_t at = 0; at < text.size();) {
    const auto dollar = std::min(text.find('$', at), text.size());
    expanded += text.substr(at, dollar - at);
    if (dollar == text.size()) break;
    const auto [name, end] = reference_at(text, dollar);
    const auto* const value = std::getenv(name.c_str());
    expanded += value ? value : text.substr(dollar, end - dollar);
    at = end;
  }
  return expanded;
}

// Letters, digits, '-', '_' and '.', as the hub allows them.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && name.front() != '-' && name.size() <= 96 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return is_ascii_alphanumeric(c) || c == '-' || c == '_' || c == '.';
         });
}

fs::path without_slash(const fs::path& path) {
  if (path.empty()) return path;
  const auto normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

// Returns the line without its end; empty if it is blank.
std::string first_line(const fs::path& path) {
  constexpr std::uint64_t kLongestRef = 4096;
  auto text = read_file(path, kLongestRef);
  text.erase(std::min(text.find_first_of("\r\n"), text.size()));
  return text.find_first_not_of(std::string_view(" \t\0", 3)) == text.npos ? "" : text;
}

// Those that can be read: other models should still be found.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (const auto& entry : entries_in(folder, unreadable))
    if (entry.is_directory(unreadable)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string names_of(const std::vector<fs::path>& folders) {
  std::string names;
  for (const auto& folder : folders)
    names += (names.empty() ? "" : ", ") + folder.filename().string();
  return names.empty() ? "none" : names;
}

// What follows the site in an address of it; empty for other addresses and names.
std::string path_on_site(const std::string& address) {
  std::string_view rest = address;
  for (const std::string_view begin : {"https://", "http://", "www."})
    if (rest.starts_with(begin)) rest.remove_prefix(begin.size());
  rest = rest.substr(0, rest.find_first_of("?#"));
  for (const std::string_view site : {"huggingface.co/", "hf.co/", "hf-mirror.com/"})
    if (rest.starts_with(site)) return std::string(rest.substr(site.size()));
  return "";
}

// As browsers write it: "%2F" is '/'.
std::string without_percents(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool may_be_coded = text[i] == '%' && i + 2 < text.size();
    const int high = may_be_coded ? hex_value(text[i + 1]) : -1;
    const int low = may_be_coded ? hex_value(text[i + 2]) : -1;
    const bool is_coded = high >= 0 && low >= 0;
    plain += is_coded ? char(high * 16 + low) : text[i];
    if (is_coded) i += 2;
  }
  return plain;
}

// "org/name/file.gguf@revision", which pull takes as it was given.
std::string text_of_name(const HubName& name) {
  const auto inside = name.inside.empty() ? "" : "/" + name.inside.string();
  return name.repository + inside + (name.revision.empty() ? "" : "@" + name.revision);
}

// The snapshot of `name` in its repository's folder. A ref names a commit; a commit may be given
// itself, or by how it begins.
fs::path snapshot_in(const fs::path& repository, const HubName& name) {
  constexpr std::size_t kShortestCommit = 4;
  const auto& revision = name.revision;
  const auto all = folders_in(repository / kSnapshots);
  const auto wanted = revision.empty() ? std::string(kMain) : revision;
  const auto ref = repository / kRefs / wanted;
  const bool has_ref = is_file(ref);
  // A download that was killed leaves an empty ref, which says as little as none.
  const auto commit = has_ref ? first_line(ref) : "";
  if (!commit.empty()) {
    const auto snapshot = repository / kSnapshots / commit;
    require(is_plain_name(commit) && is_folder(snapshot), repository.string(), " has ", wanted,
            " at the commit ", commit, ", whose files were not downloaded; it has: ", names_of(all),
            "; 'braid pull ", text_of_name(name), "' loads them");
    return snapshot;
  }
  std::vector<fs::path> same;
  if (wanted.size() >= kShortestCommit && !revision.empty())
    std::copy_if(all.begin(), all.end(), std::back_inserter(same), [&](const fs::path& snapshot) {
      return snapshot.filename().string().starts_with(wanted);
    });
  if (same.empty() && revision.empty() && all.size() == 1) return all.front();
  require(same.size() == 1, repository.string(), " has no revision ", wanted,
          has_ref ? text_of(": its ", ref.lexically_relative(repository).string(), " is empty, as ",
                            "a killed download leaves it")
                  : "",
          "; snapshots that were downloaded: ", names_of(all), "; 'braid pull ", text_of_name(name),
          "' loads it");
  return same.front();
}

// The branch or tag, main first, that stands for a commit; empty if none does.
std::string ref_of(const fs::path& repository, const std::string& commit) {
  std::vector<std::string> names;
  const auto refs = repository / kRefs;
  const auto stands_for_commit = [&](const fs::path& ref) {
    try {
      return first_line(ref) == commit;
    } catch (const Error&) {  // damaged: other models should still be found
      return false;
    }
  };
  for (const auto& ref : files_below(refs))
    if (stands_for_commit(ref)) names.push_back(ref.lexically_relative(refs).string());
  if (std::find(names.begin(), names.end(), kMain) != names.end()) return std::string(kMain);
  return names.empty() ? "" : *std::min_element(names.begin(), names.end());
}

// Where `path` lies in a cache: the repository's folder, and how many components follow it.
struct InCache {
  fs::path folder = {};
  std::vector<std::string> rest = {};
};

std::optional<InCache> place_in_cache(const fs::path& path) {
  InCache place;
  for (auto at = without_slash(path); at.has_relative_path(); at = at.parent_path()) {
    const auto name = at.filename().string();
    if (!repository_of_folder(name).empty()) {
      place.folder = at;
      std::reverse(place.rest.begin(), place.rest.end());
      const bool is_cache = place.rest.empty() || place.rest.front() == kSnapshots;
      return is_cache ? std::optional(place) : std::nullopt;
    }
    place.rest.push_back(name);
  }
  return {};
}

}  // namespace

fs::path hub_cache() {
  for (const char* const name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const auto cache = variable(name); !cache.empty()) return expanded_path(cache);
  return hub_home() / "hub";
}

fs::path hub_home() {
  if (const auto home = variable("HF_HOME"); !home.empty()) return expanded_path(home);
  const auto caches = variable("XDG_CACHE_HOME");
  return expanded_path(caches.empty() ? "~/.cache" : caches) / "huggingface";
}

fs::path expanded_path(const std::string& path) {
  const bool is_at_home = path == "~" || path.starts_with("~/");
  const auto home = is_at_home ? home_folder() : std::nullopt;
  return with_variables(home ? *home + path.substr(1) : path);
}

std::string repository_of_folder(const std::string& folder) {
  if (!folder.starts_with(kFolderPrefix)) return "";
  auto name = folder.substr(kFolderPrefix.size());
  if (const auto between = name.find(kBetween); between != name.npos)
    name.replace(between, kBetween.size(), "/");
  return name;
}

std::string folder_of_repository(std::string repository) {
  if (const auto slash = repository.find('/'); slash != repository.npos)
    repository.replace(slash, 1, kBetween);
  return std::string(kFolderPrefix) + repository;
}

std::optional<HubName> hub_name(const std::string& name) {
  if (!path_on_site(name).empty()) return {};  // "hf.co/org/name"
  HubName found;
  auto rest = name;
  const auto at = rest.find('@');
  if (at != rest.npos) {
    found.revision = rest.substr(at + 1);
    rest.erase(at);
    if (found.revision.empty() || found.revision.find("..") != std::string::npos ||
        found.revision.front() == '/')
      return {};
  }
  const auto slash = rest.find('/');
  if (slash == rest.npos) return {};
  const auto inside = rest.find('/', slash + 1);
  found.repository = rest.substr(0, inside);
  if (inside != rest.npos) found.inside = rest.substr(inside + 1);
  for (const auto& part : found.inside)
    if (part == "..") return {};
  const bool is_name =
      is_plain_name(rest.substr(0, slash)) && is_plain_name(found.repository.substr(slash + 1));
  return is_name && !found.inside.is_absolute() ? std::optional(found) : std::nullopt;
}

std::optional<HubName> hub_name_of_address(const std::string& address) {
  std::vector<std::string> parts;
  TextReader path(path_on_site(address));
  for (std::string part; std::getline(path, part, '/');)
    if (!part.empty()) parts.push_back(without_percents(part));
  constexpr std::array kOthers = {"datasets", "spaces", "docs", "papers", "collections"};
  if (parts.size() < 2 || std::ranges::count(kOthers, parts[0]) > 0) return {};
  auto name = hub_name(parts[0] + "/" + parts[1]);
  constexpr std::array kPages = {"tree", "blob", "resolve", "raw"};
  if (!name || parts.size() < 4 || std::ranges::count(kPages, parts[2]) == 0) return name;
  auto inside = parts[0] + "/" + parts[1];
  for (std::size_t i = 4; i < parts.size(); ++i) inside += "/" + parts[i];
  return hub_name(parts[3] == kMain ? inside : inside + "@" + parts[3]);
}

fs::path find_in_hub(const HubName& name, const fs::path& cache) {
  const auto folder = cache / folder_of_repository(name.repository);
  if (!is_folder(folder)) return {};
  const auto snapshot = snapshot_in(folder, name);
  if (name.inside.empty()) return snapshot;
  require(is_there(snapshot / name.inside), snapshot.string(), " has no ", name.inside.string(),
          ": 'braid pull ", text_of_name(name), "' loads it");
  return snapshot / name.inside;
}

fs::path found_in_hub(const fs::path& name) {
  const auto in_hub = hub_name(name.string());
  return in_hub ? find_in_hub(*in_hub, hub_cache()) : fs::path();
}

std::string not_in_hub(const fs::path& name) {
  if (const auto shown = hub_name_of_address(name.string())) {
    const auto own = text_of_name(*shown);
    const bool is_cached = !find_in_hub(*shown, hub_cache()).empty();
    return text_of(", which is an address: its name here is ", own,
                   is_cached ? ", as Hugging Face's cache has it"
                             : text_of(", and 'braid pull ", own, "' loads it"));
  }
  const auto in_hub = hub_name(name.string());
  if (in_hub)
    return text_of(", and none of that name in Hugging Face's cache, ", hub_cache().string(),
                   ": 'braid pull ", text_of_name(*in_hub), "' loads it");
  const bool is_address = name.string().find("://") != std::string::npos;
  return is_address ? ", which is an address: download what is there, and give its path" : "";
}

std::string why_unlisted(const fs::path& folder) {
  std::error_code failure;
  (void)entries_in(folder, failure);
  const bool is_missing =
      failure == std::errc::no_such_file_or_directory || failure == std::errc::not_a_directory;
  return failure && !is_missing ? text_of(folder.string(), " cannot be read: ", failure.message())
                                : "";
}

std::vector<CachedRevision> revisions_in_hub(const fs::path& cache) {
  constexpr std::size_t kShownDigits = 8;
  std::vector<CachedRevision> found;
  std::error_code unreadable;
  for (const auto& entry : entries_in(cache, unreadable)) {
    const auto& folder = entry.path();
    const auto repository = repository_of_folder(folder.filename().string());
    if (repository.empty()) continue;
    if (auto why = why_unlisted(folder / kSnapshots); !why.empty())
      found.push_back(
          {.name = repository, .snapshot = folder / kSnapshots, .unlisted = std::move(why)});
    const auto snapshots = folders_in(folder / kSnapshots);
    for (const auto& snapshot : snapshots) {
      const auto commit = snapshot.filename().string();
      const auto ref = ref_of(folder, commit);
      const bool is_plain = ref == kMain || (ref.empty() && snapshots.size() == 1);
      const auto revision = ref.empty() ? commit.substr(0, kShownDigits) : ref;
      found.push_back(
          {.name = is_plain ? repository : repository + "@" + revision, .snapshot = snapshot});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

fs::path snapshot_of(const fs::path& path) {
  const auto place = place_in_cache(path);
  const bool is_above = place && place->rest.size() < 2;
  if (!is_above || !is_folder(place->folder / kSnapshots)) return path;
  const auto repository = repository_of_folder(place->folder.filename().string());
  return snapshot_in(place->folder, {.repository = repository, .inside = {}});
}

std::string model_name(const fs::path& path) {
  const auto place = place_in_cache(path);
  const bool is_model = place && place->rest.size() <= 2;
  const auto name = is_model ? repository_of_folder(place->folder.filename().string())
                             : without_slash(path).filename().string();
  return fs::path(name).filename().string();
}

std::string hub_repository(const fs::path& path) {
  const auto place = place_in_cache(path);
  return place ? repository_of_folder(place->folder.filename().string()) : "";
}

}  // namespace braid
