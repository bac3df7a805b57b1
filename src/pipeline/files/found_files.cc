#include "pipeline/files/found_files.h"

#include <algorithm>
#include <set>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "pipeline/families/comfy_folders.h"
#include "pipeline/families/family.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using comfy::Folders;

bool is_weights(const fs::path& path) {
  return path.extension() == ".safetensors" || path.extension() == ".gguf";
}

// A folder is looked into once, however many links lead to it: one may lead to a folder around it.
void add_weights(const fs::path& folder, std::set<fs::path>& seen, std::vector<fs::path>& found) {
  std::error_code unreadable;
  const auto real = fs::canonical(folder, unreadable);
  if (unreadable || !seen.insert(real).second) return;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (entry.is_directory(unreadable)) add_weights(entry.path(), seen, found);
    if (entry.is_regular_file(unreadable) && is_weights(entry.path()))
      found.push_back(entry.path());
  }
}

// Files of weights in these folders and their subfolders, sorted by name.
std::vector<fs::path> weights_in(const fs::path& comfy, const Folders& folders) {
  std::set<fs::path> seen;
  std::vector<fs::path> found;
  for (const char* const folder : folders) add_weights(comfy / folder, seen, found);
  std::sort(found.begin(), found.end());
  return found;
}

std::string names_of(const std::vector<fs::path>& files) {
  std::string names;
  for (const auto& file : files) names += (names.empty() ? "" : ", ") + file.filename().string();
  return names.empty() ? "none" : names;
}

bool is_named(const fs::path& file, const fs::path& name) {
  return file.filename() == name.filename() || file.stem() == name.filename();
}

// Resolves `name`: a path as it is, else a file in these folders, with or without its extension.
fs::path named_file(const fs::path& name, const fs::path& comfy, const Folders& folders) {
  if (is_there(name)) return name;
  for (const char* const folder : folders)
    if (is_file(comfy / folder / name)) return comfy / folder / name;
  const auto all = weights_in(comfy, folders);
  std::vector<fs::path> same;
  std::copy_if(all.begin(), all.end(), std::back_inserter(same),
               [&](const fs::path& file) { return is_named(file, name); });
  require(!same.empty(), "there is no ", name.string(), ", and none in ", comfy.string(),
          ", which has: ", names_of(all));
  require(same.size() == 1, comfy.string(), " has ", same.size(), " files named ", name.string(),
          ", such as ", same.front().string());
  return same.front();
}

fs::path only_model(const fs::path& comfy) {
  const auto all = weights_in(comfy, comfy::kModels);
  require(all.size() == 1, "one of the models in ", comfy.string(),
          " has to be chosen, it has: ", names_of(all));
  return all[0];
}

fs::path models_folder(const fs::path& comfy) {
  require(is_folder(comfy), "there is no ComfyUI models folder at ", comfy.string());
  return is_folder(comfy / "models") ? comfy / "models" : comfy;
}

bool fits(const fs::path& file, const Part& part) {
  try {
    return find_part(file, part).found.has_value();
  } catch (const InputError&) {
    return false;  // damaged, or of another kind
  }
}

fs::path largest_that_fits(const Part& part, const std::vector<fs::path>& files,
                           const fs::path& comfy) {
  fs::path best;
  for (const auto& file : files) {
    const bool is_better = best.empty() || fs::file_size(file) > fs::file_size(best);
    if (is_better && fits(file, part)) best = file;
  }
  require(!best.empty(), comfy.string(), " has no weights of ", part.label,
          ", none of these fits: ", names_of(files));
  return best;
}

bool has_weights(const ModelFiles& files, const Part& part) {
  try {
    (void)files.open(part.folder);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// Finds the parts that neither the options nor the components name.
void find_parts(PipelineOptions& options, const fs::path& comfy) {
  const auto files = find_model(options);
  const auto family = open_family(files);
  const auto search = [&](const Part& part, const Folders& folders) {
    auto candidates = weights_in(comfy, folders);
    if (!files.single_file.empty()) candidates.push_back(files.single_file);  // may hold all parts
    return largest_that_fits(part, candidates, comfy);
  };
  auto& texts = options.text_encoder_files;
  for (const auto* const part : family->text_parts()) {
    if (has_weights(files, *part)) continue;
    const auto found = search(*part, comfy::kTextEncoders);
    if (std::find(texts.begin(), texts.end(), found) == texts.end()) texts.push_back(found);
  }
  const auto& decoder = family->part(Part::Role::kDecoder);
  if (!has_weights(files, decoder)) options.vae_file = search(decoder, comfy::kAutoencoders);
}

// Words of the directory's name that the file's name has, minus those it lacks.
int likeness(const fs::path& directory, const fs::path& file) {
  const auto name = ascii_lower_case(file.filename().string());
  auto words = ascii_lower_case(directory.filename().string());
  std::replace(words.begin(), words.end(), '-', ' ');
  int sum = 0;
  for (std::size_t begin = 0; begin < words.size();) {
    const auto end = std::min(words.find(' ', begin), words.size());
    sum += name.find(words.substr(begin, end - begin)) == name.npos ? -1 : 1;
    begin = end + 1;
  }
  return sum;
}

bool has_shape_of(const fs::path& directory, const fs::path& transformer) {
  const ModelFiles files{
      .folder = directory, .single_file = transformer, .family = &family_in(directory)};
  return fits(transformer, open_family(files)->part(Part::Role::kDenoiser));
}

}  // namespace

fs::path published_directory(const fs::path& transformer, const fs::path& published) {
  (void)Checkpoint::open_file(transformer);  // reports a damaged file
  std::vector<fs::path> same;
  for (const auto& entry : fs::directory_iterator(published)) {
    if (!is_there(entry.path() / "model_index.json")) continue;
    if (has_shape_of(entry.path(), transformer)) same.push_back(entry.path());
  }
  require(!same.empty(), transformer.string(), " is a single file, and none of the models whose ",
          "configurations come with Braid has its shape: the directory of the text encoders, ",
          "tokenizers, autoencoder and scheduler is needed too, as its components");
  std::sort(same.begin(), same.end());
  return *std::max_element(same.begin(), same.end(), [&](const auto& a, const auto& b) {
    return likeness(a, transformer) < likeness(b, transformer);
  });
}

PipelineOptions with_files_found(PipelineOptions options) {
  const auto comfy = options.comfy.empty() ? fs::path() : models_folder(options.comfy);
  options.comfy.clear();
  if (!comfy.empty()) {
    options.model = options.model.empty() ? only_model(comfy)
                                          : named_file(options.model, comfy, comfy::kModels);
    for (auto& adapter : options.adapters)
      adapter.file = named_file(adapter.file, comfy, comfy::kAdapters);
  }
  const bool lacks_components = is_file(options.model) && options.components.empty();
  if (lacks_components && !options.published.empty())
    options.components = published_directory(options.model, options.published);
  if (!comfy.empty()) find_parts(options, comfy);
  return options;
}

}  // namespace braid
