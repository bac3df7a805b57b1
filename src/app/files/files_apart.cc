#include "app/files/files_apart.h"

#include <sys/stat.h>

#include <map>
#include <optional>

#include "app/files/output_files.h"
#include "base/error.h"
#include "base/file.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

using FileId = std::pair<dev_t, ino_t>;

// The same for all names of a file. Devices and pipes lose nothing.
std::optional<FileId> id_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return FileId{status.st_dev, status.st_ino};
}

// Also of a file that is not there yet.
fs::path whole_name(const fs::path& path) {
  std::error_code unknown;  // then it is a file of its own
  return fs::weakly_canonical(fs::absolute(file_named(path), unknown), unknown);
}

// A path itself, or what lies in its folders, which may be links.
std::vector<fs::path> files_at(const fs::path& path) {
  constexpr int kDeepest = 4;  // folders of a model have one or two; links may lead in circles
  std::error_code unreadable;
  if (!fs::is_directory(path, unreadable)) return {path};
  constexpr auto kOptions = fs::directory_options::skip_permission_denied |
                            fs::directory_options::follow_directory_symlink;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(path, kOptions, unreadable);
  for (; !unreadable && entry != fs::recursive_directory_iterator(); entry.increment(unreadable)) {
    if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
    if (!is_picture_name(entry->path())) files.push_back(entry->path());
  }
  return files;
}

void require_distinct(const std::vector<NamedFile>& written) {
  std::map<fs::path, std::string> names;
  std::map<FileId, std::string> ids;
  for (const auto& [flag, path] : written) {
    const auto id = id_of(path);
    const auto [name, is_new] = names.emplace(whole_name(path), flag);
    const auto* const other = !is_new                   ? &name->second
                              : id && ids.contains(*id) ? &ids[*id]
                                                        : nullptr;
    require(!other || *other == flag, flag, " and ", other ? *other : "", " are the same file, ",
            path.string());
    if (id) ids.emplace(*id, flag);
  }
}

}  // namespace

std::vector<NamedFile> files_read(const GenerateFlags& flags, const PipelineOptions& options) {
  std::vector<NamedFile> files;
  const auto add = [&](const char* flag, const fs::path& path) {
    if (!path.empty() && path != "-") files.push_back({flag, path});
  };
  const auto add_all = [&](const char* flag, const std::vector<fs::path>& paths) {
    for (const auto& path : paths) add(flag, path);
  };
  add("--init", flags.pictures.init);
  add("--mask", flags.pictures.mask);
  add_all("--reference", flags.pictures.references);
  add_all("--control", flags.pictures.controls);
  add("--latents", flags.latents);
  add("--prompt-file", flags.prompt_file);
  add("--boxes", flags.boxes);
  add("--enhancer-system", flags.enhancer.system);
  add("--enhancer-key-file", flags.enhancer.key_file);
  add("--model", options.model);
  add("--components", options.components);
  add_all("--text-encoder-file", options.text_encoder_files);
  add("--vae-file", options.vae_file);
  add_all("--controlnet", options.controlnets);
  add("--redux", options.redux);
  for (const auto& adapter : options.adapters) add("--lora", adapter.file);
  return files;
}

void require_apart(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read) {
  require_distinct(written);
  std::map<FileId, NamedFile> replaced;
  for (const auto& file : written)
    if (const auto id = id_of(file.path)) replaced.emplace(*id, file);
  for (const auto& [flag, path] : read)
    if (const auto id = flag == "--init" ? id_of(path) : std::nullopt)
      std::erase_if(replaced, [&](const auto& file) {
        return file.first == *id && file.second.flag == "--output";
      });
  if (replaced.empty()) return;  // usually: the model's folders need no look
  for (const auto& [flag, path] : read)
    for (const auto& file : files_at(path)) {
      const auto id = id_of(file);
      const auto found = id ? replaced.find(*id) : replaced.end();
      if (found == replaced.end()) continue;
      const auto& [by, name] = found->second;
      throw InputError(text_of(by, " ", name.string(), " would replace ", file.string(), ", which ",
                               flag, " reads: give another name"));
    }
}

}  // namespace braid
