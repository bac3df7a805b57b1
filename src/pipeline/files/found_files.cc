#include "pipeline/files/found_files.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/foreign_file.h"
#include "base/hub_cache.h"
#include "pipeline/families/family.h"
#include "pipeline/files/comfy_files.h"
#include "pipeline/files/missing_parts.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/files/published.h"
#include "weights/files/folder_files.h"
#include "weights/files/whole_checkpoint.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using comfy::Folders;

// ----------------------------------------------------------------------------- names of files

// A link whose file is gone, as a cache has it that was cleared by hand.
void refuse_dead_link(const fs::path& name) {
  std::error_code failure;
  if (!fs::is_symlink(fs::symlink_status(name, failure)) || is_there(name)) return;
  const auto target = file_named(name);
  const auto unfinished = unfinished_download(target);
  throw InputError(text_of(name.string(), " is a link to ", target.string(), ", which is not there",
                           unfinished.empty() ? ""
                                              : ", but " + unfinished.string() +
                                                    " is: a download that was not completed"));
}

[[noreturn]] void refuse_missing(const fs::path& name, const fs::path& comfy,
                                 const Folders& folders) {
  const auto unfinished = unfinished_download(name);
  require(unfinished.empty(), "there is no ", name.string(), ", but ", unfinished.string(),
          " is: a download that was not completed");
  if (comfy.empty()) throw InputError("there is no model at " + name.string() + not_in_hub(name));
  const auto there = weights_below(comfy_folders(comfy, folders));
  throw InputError(text_of("there is no ", name.string(), ", and none in ", comfy.string(),
                           ", which has: ", list_of_files(there.files), unread_clause(there.unread),
                           not_in_hub(name)));
}

// An existing path first, then ComfyUI's folder, then the cache. Names that are found nowhere stay,
// without ComfyUI, for the reader of the file to complain.
fs::path located(const fs::path& name, const fs::path& comfy, const Folders& folders) {
  if (name.empty() || is_there(name)) return snapshot_of(name);
  if (!comfy.empty())
    if (const auto file = find_in_comfy(name, comfy, folders); !file.empty()) return file;
  if (const auto path = found_in_hub(name); !path.empty()) return path;
  refuse_dead_link(name);
  if (!comfy.empty() || !not_in_hub(name).empty()) refuse_missing(name, comfy, folders);
  return name;
}

// What a trainer saves: a denoiser in its folder, without the other parts.
fs::path trained_denoiser_in(const fs::path& path) {
  if (is_there(path / "vae") || is_there(path / "scheduler")) return {};
  for (const auto& folder : denoiser_folders())
    if (is_there(path / folder / "config.json")) return path / folder;
  return {};
}

// A folder without an index that holds a single file is that file: a repository of one GGUF file.
fs::path model_in(const fs::path& path) {
  if (!is_folder(path) || is_model_directory(path)) return path;
  if (kind_of_folder(path).role != FileRole::kUnknown) return path;
  if (const auto trained = trained_denoiser_in(path); !trained.empty()) return trained;
  const auto files = weights_lying_in(path);
  if (files.size() != 1) return path;
  refuse_dead_link(files.front());
  return files.front();
}

fs::path located_model(const fs::path& name, const fs::path& comfy) {
  require(!name.empty() || !comfy.empty(), "no model is named: `model` should be a folder, a file ",
          "or a name in Hugging Face's cache");
  if (name.empty()) return only_comfy_model(comfy);
  if (!comfy.empty() && !is_there(name))
    for (const auto& folder : comfy_folders(comfy, comfy::kDirectories))
      if (is_model_directory(folder / name)) return folder / name;
  return model_in(located(name, comfy, comfy::kModels));
}

// A name of which only the configuration comes with Braid.
void refuse_published(const fs::path& name, const fs::path& published) {
  if (name.has_parent_path() || is_there(name) || !unfinished_download(name).empty()) return;
  const auto known = published_named(name.string(), published);
  if (known.empty()) return;
  const auto repository = family_of_directory(known).publisher + "/" + known.filename().string();
  require(found_in_hub(repository).empty(), "there is no model at ", name.string(),
          ": Hugging Face's cache has it as `model` ", repository);
  throw InputError(text_of("there is no model at ", name.string(),
                           ", Braid has its configuration alone: 'braid pull ", repository,
                           "' loads the whole, as `model` ", repository));
}

fs::path located_components(const fs::path& name, const fs::path& published) {
  if (name.empty() || is_there(name)) return snapshot_of(name);
  if (const auto path = found_in_hub(name); !path.empty()) return path;
  if (const auto path = published_named(name.filename().string(), published); !path.empty())
    return path;
  refuse_dead_link(name);
  const auto names = list_of_published(published);
  throw InputError(text_of("there is no model at ", name.string(), not_in_hub(name),
                           names.empty() ? ""
                                         : ", and no configuration of that name; those that "
                                           "come with Braid: ",
                           names));
}

// ----------------------------------------------------------------------- what is left open

bool is_lone_transformer(const fs::path& model) {
  return is_file(model) || (is_folder(model) && !is_model_directory(model) &&
                            kind_of_folder(model).role == FileRole::kModel);
}

// A transformer in its model's own directory.
fs::path directory_around(const fs::path& transformer) {
  const auto path = fs::absolute(transformer).lexically_normal();
  const auto folders = denoiser_folders();
  for (const auto& folder : {path, path.parent_path()}) {
    const bool is_denoisers =
        std::ranges::find(folders, folder.filename().string()) != folders.end();
    if (is_denoisers && is_model_directory(folder.parent_path())) return folder.parent_path();
  }
  return {};
}

fs::path chosen_components(const PipelineOptions& options, const Warn& say) {
  require_denoiser(options.model);
  if (const auto own = directory_around(options.model); !own.empty()) return own;
  if (options.published.empty()) return {};
  const auto choice = choose_published(options.model, options.published);
  if (say) say(sentence_of_choice(choice, options.model));
  return choice.directory;
}

// Chooses by name and metadata, then by size.
fs::path likeliest(const std::vector<fs::path>& files, const Part& part,
                   const std::string& family) {
  const auto rank = [&](const fs::path& file) {
    return std::pair(likelihood(file, part, family), fs::file_size(file));
  };
  return *std::max_element(files.begin(), files.end(),
                           [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

// The files of parts that neither the options nor the components have.
struct FoundParts {
  std::vector<fs::path> text_encoders = {};
  fs::path vae = {};
};

// What lies in the folders for a part.
struct Candidates {
  std::vector<fs::path> fitting = {}, others = {};
  std::vector<UnreadPath> unread = {};  // also damaged files
  std::vector<UnreadPath> coded = {};   // files that are whole, in codings of other tools
};

Candidates candidates_for(const Part& part, const ModelFiles& files, const fs::path& comfy) {
  const auto& names =
      part.role == Part::Role::kDecoder ? comfy::kAutoencoders : comfy::kTextEncoders;
  auto there = weights_below(comfy_folders(comfy, names));
  Candidates candidates{.unread = std::move(there.unread)};
  for (const auto& file : there.files) try {
      const bool fits = find_part_in(file, part, files).found.has_value();
      (fits ? candidates.fitting : candidates.others).push_back(file);
    } catch (const OtherCoding& refusal) {
      candidates.coded.push_back({.path = file, .sentence = refusal.what()});
    } catch (const InputError& damage) {
      candidates.unread.push_back({.path = file, .sentence = damage.what()});
    }
  return candidates;
}

const char* flag_of_files(const Part& part) {
  return part.role == Part::Role::kDecoder ? "`vae_file`" : "`text_encoder_files`";
}

std::string fit_too(const std::vector<fs::path>& files, const Part& part) {
  return text_of(list_of_files(files), files.size() == 1 ? " fits" : " fit",
                 ", too: ", flag_of_files(part), " chooses");
}

// Looks for those parts.
class PartFinder {
 public:
  struct Told {
    const Warn& say;   // which of several files is taken
    const Warn& warn;  // which could not be read
  };

  PartFinder(const ModelFiles& files, const fs::path& comfy, Told told)
      : files_(files), comfy_(comfy), told_(told) {
    const bool is_file_given = is_file(files_.single_file);
    if (is_file_given && parts_in(Checkpoint::open_file(files_.single_file)).size() > 1)
      whole_ = files_.single_file;
  }

  FoundParts run() {
    FoundParts parts;
    if (comfy_.empty() && whole_.empty()) return parts;
    const auto family = open_family(files_);
    for (const auto* const part : parts_without_weights(files_, *family)) {
      const auto found = find(*part, family->description().family);
      if (found.empty()) continue;
      if (part->role == Part::Role::kDecoder)
        parts.vae = found;
      else if (std::ranges::find(parts.text_encoders, found) == parts.text_encoders.end())
        parts.text_encoders.push_back(found);
    }
    tell_unread();
    return parts;
  }

  // Says what else fits the parts whose weights are among the components.
  void tell_passed_over() const {
    if (!told_.say || (comfy_.empty() && whole_.empty())) return;
    const auto family = open_family(files_);
    for (const auto role : {Part::Role::kText, Part::Role::kDecoder})
      for (const auto* const part : family->parts(role)) {
        const auto& own = part->folder;
        if (files_.part_files.contains(own) || !files_.has_weights(own)) continue;
        auto fitting = comfy_.empty() ? std::vector<fs::path>()
                                      : candidates_for(*part, files_, comfy_).fitting;
        if (is_in_whole(*part)) fitting.push_back(whole_);
        if (!fitting.empty())
          told_.say(text_of(part->label, ": the weights in ", files_.path_of(own).string(),
                            " are taken, as `components` come first; ", fit_too(fitting, *part)));
      }
  }

 private:
  bool is_in_whole(const Part& part) const {
    return !whole_.empty() && find_part_in(whole_, part, files_).found.has_value();
  }

  // The parts of a checkpoint belong together: they come before those of a folder.
  fs::path find(const Part& part, const std::string& family) {
    if (is_in_whole(part)) return whole_;
    if (comfy_.empty()) return {};
    auto [fitting, others, unread, coded] = candidates_for(part, files_, comfy_);
    require(!fitting.empty(), comfy_.string(), " has no weights of ", part.label,
            others.empty() ? "" : ", none of these fits: " + list_of_files(others),
            unread_clause(unread), unread_clause(coded));
    const auto chosen = likeliest(fitting, part, family);
    for (const auto& path : unread) {
      auto& taken = taken_beside_[path.sentence];
      taken +=
          (taken.empty() ? "" : ", ") + text_of(chosen.filename().string(), " for ", part.label);
    }
    std::erase(fitting, chosen);
    if (!fitting.empty() && told_.say)
      told_.say(text_of(part.label, ": ", chosen.filename().string(), " is taken; ",
                        fit_too(fitting, part)));
    return chosen;
  }

  void tell_unread() const {
    if (!told_.warn) return;
    for (const auto& [sentence, taken] : taken_beside_)
      told_.warn(text_of("in ", comfy_.string(), " were found ", taken, ", but ", sentence));
  }

  const ModelFiles& files_;
  const fs::path& comfy_;
  const Told told_;
  fs::path whole_ = {};  // the checkpoint, if it holds all parts
  // Each sentence on a file that could not be read has the files that were taken.
  std::map<std::string, std::string> taken_beside_ = {};
};

void tell_custom_class(const PipelineOptions& options, const Warn& say) {
  const auto& folder = options.components.empty() ? options.model : options.components;
  if (!say || !is_model_directory(folder)) return;
  if (const auto note = custom_class_note(folder); !note.empty()) say(note);
}

// The other parts of a single file; a directory has its own.
fs::path settled_components(const PipelineOptions& options, const Warn& say, const Warn& warn) {
  const auto& given = options.components;
  if (is_lone_transformer(options.model))
    return given.empty() ? chosen_components(options, say)
                         : located_components(given, options.published);
  if (!given.empty() && is_there(options.model) && warn)
    warn(text_of("`components` ", given.string(), " is not read: ", options.model.string(),
                 " is no single file, but has parts of its own"));
  return {};
}

void locate_parts(PipelineOptions& options, const fs::path& comfy) {
  for (auto& adapter : options.adapters)
    adapter.file = located(adapter.file, comfy, comfy::kAdapters);
  for (auto& file : options.text_encoder_files) file = located(file, comfy, comfy::kTextEncoders);
  options.vae_file = located(options.vae_file, comfy, comfy::kAutoencoders);
  for (auto& net : options.controlnets) {
    net = located(net, comfy, comfy::kControlNets);
    if (is_weights_name(net) && is_there(net.parent_path() / "config.json"))
      net = net.parent_path();  // the file in a directory stands for it
  }
  options.redux = located(options.redux, {}, {});
}

// Adds the parts that are still missing, to the options and to the files.
void add_missing_parts(FoundModel& model, PartFinder finder) {
  auto& [options, files] = model;
  auto found = finder.run();
  auto& texts = options.text_encoder_files;
  std::erase_if(found.text_encoders, [&](const fs::path& file) {
    return std::ranges::find(texts, file) != texts.end();
  });
  place_parts(found.text_encoders, found.vae, files);
  texts.insert(texts.end(), found.text_encoders.begin(), found.text_encoders.end());
  if (!found.vae.empty()) options.vae_file = found.vae;
}

}  // namespace

PipelineOptions with_paths(PipelineOptions options, const Warn& say, const Warn& warn) {
  const auto comfy = options.comfy.empty() ? fs::path() : comfy_models(options.comfy);
  options.model = located_model(options.model, comfy);
  refuse_published(options.model, options.published);
  locate_parts(options, comfy);
  options.components = settled_components(options, say, warn);
  tell_custom_class(options, say);
  options.comfy = comfy;
  return options;
}

FoundModel find_model(const PipelineOptions& given, WeightsNeeded needed, const Warn& say,
                      const Warn& warn) {
  auto options = with_paths(given, say, warn);
  const auto comfy = std::exchange(options.comfy, {});
  auto files = placed_files(options);
  FoundModel model{.options = std::move(options), .files = std::move(files)};
  const auto& components = model.options.components;
  const bool may_lack_parts = is_lone_transformer(model.options.model) && !components.empty();
  if (!comfy.empty() || may_lack_parts) {
    PartFinder finder(model.files, comfy, {.say = say, .warn = warn});
    if (may_lack_parts && !given.components.empty()) finder.tell_passed_over();
    add_missing_parts(model, std::move(finder));
  }
  if (needed == WeightsNeeded::kAll && !model.files.single_file.empty())
    require_all_weights(model.files);
  return model;
}

}  // namespace braid
