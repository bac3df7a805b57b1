#include "pipeline/files/comfy_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/folder_entries.h"
#include "pipeline/files/extra_model_paths.h"
#include "weights/files/folder_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using comfy::Folders;

// A folder is looked into once, however many links lead to it (one may lead to a folder around it),
// and in whatever case a file system of Windows has its name.
class WeightsSearch {
 public:
  void look_into(const fs::path& folder) {
    struct stat status = {};
    if (::stat(folder.c_str(), &status) != 0) {
      if (errno != ENOENT && errno != ENOTDIR) add_unread(folder, {errno, std::generic_category()});
      return;
    }
    if (!seen_.emplace(status.st_dev, status.st_ino).second) return;
    std::error_code failure;
    const auto entries = entries_in(folder, failure);
    if (failure) add_unread(folder, failure);
    for (const auto& entry : entries) add(entry.path(), folder);
  }

  FoundWeights found() && {
    std::sort(found_.files.begin(), found_.files.end());
    std::sort(found_.unread.begin(), found_.unread.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return std::move(found_);
  }

 private:
  void add(const fs::path& path, const fs::path& folder) {
    std::error_code failure;
    const auto type = fs::status(path, failure).type();
    if (type == fs::file_type::directory) return look_into(path);
    const bool is_weights = is_weights_name(path);
    if (type == fs::file_type::regular) {
      if (is_weights) found_.files.push_back(path);
    } else if (failure == std::errc::permission_denied && !is_reached(path)) {
      add_unread(folder, failure);  // it may be listed, but not entered
    } else if (failure == std::errc::permission_denied) {
      add_unread(path, failure);  // a link into a folder that may not be entered
    } else if (is_weights || (failure && type != fs::file_type::not_found)) {
      add_unread(path, failure);
    }
  }

  static bool is_reached(const fs::path& path) {
    std::error_code failure;
    return fs::exists(fs::symlink_status(path, failure));
  }

  void add_unread(const fs::path& path, std::error_code failure) {
    const bool is_known = std::any_of(found_.unread.begin(), found_.unread.end(),
                                      [&](const auto& other) { return other.path == path; });
    if (is_known) return;
    const auto why = failure ? " cannot be read: " + failure.message()
                             : std::string(" is neither a file nor a folder");
    found_.unread.push_back({.path = path, .sentence = path.string() + why});
  }

  std::set<std::pair<dev_t, ino_t>> seen_;
  FoundWeights found_;
};

// ComfyUI has the file beside its folder "models", which may be given as "." or as a link.
std::vector<ExtraFolder> extra_folders(const fs::path& comfy) {
  constexpr const char* kFile = "extra_model_paths.yaml";
  std::error_code failure;  // the path is then empty
  std::vector<fs::path> folders = {comfy};
  for (const auto& path : {fs::absolute(comfy, failure), fs::canonical(comfy, failure)}) {
    const auto models = (path / "").lexically_normal().parent_path();
    if (models.filename() == "models") folders.push_back(models.parent_path());
  }
  for (const auto& folder : folders)
    if (is_file(folder / kFile)) return read_extra_model_paths(folder / kFile);
  return {};
}

// As a name may be without its extension.
bool is_same_name(const fs::path& file, const fs::path& name) {
  return file == name || file.parent_path() / file.stem() == name;
}

// A name with folders ("styles/ink") has them in one of `places`, or begins with the place's own
// name ("loras/styles/ink").
bool is_named(const fs::path& file, const fs::path& name, const std::vector<fs::path>& places) {
  if (!name.has_parent_path()) return is_same_name(file.filename(), name);
  return std::any_of(places.begin(), places.end(), [&](const fs::path& place) {
    return is_same_name(file.lexically_relative(place), name) ||
           is_same_name(file.lexically_relative(place.parent_path()), name);
  });
}

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code failure;
  return fs::equivalent(a, b, failure);
}

// The files directly at `name` in these places, of any extension of weights.
std::vector<fs::path> completed(const fs::path& name, const std::vector<fs::path>& places) {
  std::vector<fs::path> files;
  for (const auto& place : places)
    for (const char* const extension : {".safetensors", ".sft", ".gguf"}) {
      const auto file = fs::path(place / name) += extension;
      std::error_code failure;  // the search for the name tells of it
      const bool is_new = std::none_of(files.begin(), files.end(), [&](const fs::path& other) {
        return is_same_file(file, other);
      });
      if (fs::is_regular_file(file, failure) && is_new) files.push_back(file);
    }
  return files;
}

}  // namespace

fs::path comfy_models(const fs::path& given) {
  require(is_folder(given), "there is no ComfyUI models folder at ", given.string());
  for (const char* const name : {"models", "Models"})
    if (is_folder(given / name)) return given / name;
  return given.has_filename() ? given : given.parent_path();
}

std::vector<fs::path> comfy_folders(const fs::path& comfy, const Folders& names) {
  std::vector<fs::path> defaults, own, others;
  for (const char* const name : names) own.push_back(comfy / name);
  for (const auto& extra : extra_folders(comfy)) {
    if (std::find(names.begin(), names.end(), extra.kind) == names.end()) continue;
    if (extra.is_default)
      defaults.insert(defaults.begin(), extra.path);  // as ComfyUI has it, the last comes first
    else
      others.push_back(extra.path);
  }
  for (const auto* const last : {&own, &others})
    defaults.insert(defaults.end(), last->begin(), last->end());
  return defaults;
}

FoundWeights weights_below(const std::vector<fs::path>& folders) {
  WeightsSearch search;
  for (const auto& folder : folders) search.look_into(folder);
  return std::move(search).found();
}

std::string unread_clause(const std::vector<UnreadPath>& unread) {
  std::string clause;
  for (const auto& path : unread) clause += "; " + path.sentence;
  return clause;
}

std::string list_of_files(const std::vector<fs::path>& files) {
  std::string names;
  for (const auto& file : files) names += (names.empty() ? "" : ", ") + file.filename().string();
  return names.empty() ? "none" : names;
}

fs::path find_in_comfy(const fs::path& name, const fs::path& comfy, const Folders& folders) {
  const auto places = comfy_folders(comfy, folders);
  for (const auto& folder : places)
    if (is_file(folder / name)) return folder / name;
  const auto plain = name.lexically_normal();
  auto same = completed(plain, places);
  if (same.empty())
    for (const auto& file : weights_below(places).files)
      if (is_named(file, plain, places)) same.push_back(file);
  require(same.size() < 2, comfy.string(), " has ", same.size(), " files named ", name.string(),
          ", such as ", same.empty() ? "" : same.front().string());
  return same.empty() ? fs::path() : same.front();
}

fs::path only_comfy_model(const fs::path& comfy) {
  const auto all = weights_below(comfy_folders(comfy, comfy::kModels));
  require(all.files.size() == 1, "one of the models in ", comfy.string(),
          " has to be chosen, it has: ", list_of_files(all.files), unread_clause(all.unread));
  return all.files[0];
}

}  // namespace braid
