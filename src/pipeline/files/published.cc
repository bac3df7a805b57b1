#include "pipeline/files/published.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder_entries.h"
#include "base/hub_cache.h"
#include "pipeline/families/family.h"
#include "pipeline/families/known_names.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/files/model_words.h"
#include "weights/files/file_notes.h"
#include "weights/files/folder_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// ---------------------------------------------------------------------------- what fits

std::string family_name(const fs::path& directory) {
  const auto& entry = family_of_directory(directory);
  return entry.open(ModelFiles{.folder = directory, .single_file = {}, .family = &entry})
      ->description()
      .family;
}

// A directory, and how the file's transformer differs from the one it describes.
struct Candidate {
  fs::path directory;
  Words own_words = {};  // of its name, without those that all candidates share
  bool guidance_agrees = true;
  std::string differences = {};
};

bool has_guidance(const Checkpoint& file) {
  return std::any_of(file.tensors().begin(), file.tensors().end(), [](const auto& tensor) {
    return tensor.first.find("guidance_in.in_layer.") != std::string::npos ||
           tensor.first.find("guidance_embedder.linear_1.") != std::string::npos;
  });
}

bool config_has_guidance(const fs::path& directory) {
  const auto& denoisers = family_of_directory(directory).denoisers;
  return std::any_of(denoisers.begin(), denoisers.end(), [&](const std::string& folder) {
    return read_json_object(directory / folder / "config.json").flag_or("guidance_embeds", false);
  });
}

std::string counts_text(const std::vector<BlockCost>& blocks) {
  std::string text;
  for (const auto& block : blocks)
    text += (text.empty() ? "" : " + ") + std::to_string(block.count);
  return text;
}

std::string differences_of(const Family& family, const ModelFiles& files) {
  const ModelFiles plain{.folder = files.folder, .single_file = {}, .family = files.family};
  const auto own = counts_text(family.shape().blocks);
  const auto published = counts_text(plain.family->open(plain)->shape().blocks);
  return own == published ? "" : text_of(", with ", own, " blocks instead of ", published);
}

// The candidate, or a sentence saying why it is none.
struct Trial {
  std::optional<Candidate> fits;
  std::string why_not = {};
};

Trial try_directory(const fs::path& directory, const fs::path& transformer) {
  try {
    const auto& entry = family_of_directory(directory);
    if (entry.denoisers.size() > 1) return {.fits = {}, .why_not = "it has several transformers"};
    const ModelFiles files{.folder = directory, .single_file = transformer, .family = &entry};
    const auto family = open_family(files);
    const auto search = find_part(transformer, family->part(Part::Role::kDenoiser));
    if (!search.found) return {.fits = {}, .why_not = search.why_not};
    return {.fits =
                Candidate{.directory = directory, .differences = differences_of(*family, files)}};
  } catch (const InputError& error) {
    return {.fits = {}, .why_not = error.what()};
  }
}

std::string directory_name(const fs::path& directory) { return directory.filename().string(); }

// Why the transformer is none of its family: preferably of a model whose shapes it has.
std::string reason_of_nearest(const fs::path& transformer, const std::vector<fs::path>& directories,
                              const std::string& family) {
  std::string reason;
  for (const auto& directory : directories) {
    if (family_name(directory) != family) continue;
    const auto why_not = try_directory(directory, transformer).why_not;
    const bool is_nearer = why_not.find("should have the shape") == why_not.npos;
    const auto words = text_of(" (", directory_name(directory), ": ", why_not, ")");
    if (is_nearer) return words;
    if (reason.empty()) reason = words;
  }
  return reason;
}

// What a transformer lacks to be one of the published models of its family.
std::string why_none_fits(const fs::path& transformer, const std::vector<fs::path>& directories) {
  const auto kind = kind_of_file(open_weights(transformer, "diffusion_pytorch_model"));
  const bool is_other = kind.role != FileRole::kModel && kind.role != FileRole::kUnknown;
  if (is_other) return misuse_of_file(transformer.string(), kind, FileRole::kModel);
  const auto what = kind.name.empty() ? "a single file" : kind.name;
  const auto reason = reason_of_nearest(transformer, directories, kind.family);
  return text_of(transformer.string(), " is ", what,
                 ", and none of the models whose configurations ", "come with Braid has its shape",
                 reason,
                 ": the directory of the text encoders, tokenizers, autoencoder and scheduler is "
                 "needed too, as its components (`components` DIR)");
}

// A file without guidance may be of a model with it (de-distilled), not the other way around.
std::vector<Candidate> candidates_for(const fs::path& transformer, const fs::path& published) {
  const auto file = open_weights(transformer, "diffusion_pytorch_model");
  const bool is_guided = has_guidance(file);
  const auto family = kind_of_file(file).family;
  const auto directories = published_directories(published);
  std::vector<Candidate> candidates;
  for (const auto& directory : directories) {
    // A trial reads the file's header several times, and a configuration costs little. Qwen-Image's
    // weights are also Qwen-Image-Edit's.
    if (!family_name(directory).starts_with(family)) continue;
    auto trial = try_directory(directory, transformer);
    if (!trial.fits) continue;
    const bool wants_guidance = config_has_guidance(directory);
    if (is_guided && !wants_guidance) continue;
    trial.fits->guidance_agrees = is_guided == wants_guidance;
    if (!trial.fits->guidance_agrees)
      trial.fits->differences +=
          ", without its guidance (`true_cfg` and `negative_prompt` guide it)";
    candidates.push_back(*trial.fits);
  }
  if (candidates.empty()) throw InputError(why_none_fits(transformer, directories));
  for (auto& candidate : candidates)
    for (const auto& word : words_of_name(directory_name(candidate.directory))) {
      const bool is_shared = std::all_of(candidates.begin(), candidates.end(), [&](const auto& c) {
        const auto words = words_of_name(directory_name(c.directory));
        return std::find(words.begin(), words.end(), word) != words.end();
      });
      if (!is_shared) candidate.own_words.push_back(word);
    }
  for (auto& candidate : candidates)
    std::sort(candidate.own_words.begin(), candidate.own_words.end());
  return candidates;
}

// ---------------------------------------------------------------------------- what a name says

bool is_named_exactly(const Words& words, const fs::path& directory) {
  const auto joined = [](const Words& parts) {
    std::string text;
    for (const auto& part : parts) text += part;
    return text;
  };
  return joined(without_formats(words)) ==
         joined(without_formats(words_of_name(directory_name(directory))));
}

bool speaks_for(const Words& words, const Candidate& candidate, bool is_name) {
  const auto other = other_word(directory_name(candidate.directory));
  if (!other.empty() && says_word(words, other)) return true;
  const auto& own = candidate.own_words;
  if (own.empty()) return is_name && is_named_exactly(words, candidate.directory);
  return std::all_of(own.begin(), own.end(),
                     [&](const std::string& word) { return says_word(words, word); });
}

// Leaves out those whose words are only some of another's: a "kontext dev" is no plain "dev".
std::vector<const Candidate*> spoken_for(const Words& words, bool is_name,
                                         const std::vector<Candidate>& candidates) {
  std::vector<const Candidate*> spoken;
  for (const auto& candidate : candidates)
    if (speaks_for(words, candidate, is_name)) spoken.push_back(&candidate);
  const auto is_part_of_another = [&](const Candidate* one) {
    return std::any_of(spoken.begin(), spoken.end(), [&](const Candidate* other) {
      return !one->own_words.empty() && other->own_words.size() > one->own_words.size() &&
             std::includes(other->own_words.begin(), other->own_words.end(), one->own_words.begin(),
                           one->own_words.end());
    });
  };
  auto kept = spoken;
  std::erase_if(kept, is_part_of_another);
  return kept;
}

// What may name a file's model: its own name, the repository in Hugging Face's cache or the folder
// of a trained part, the metadata.
struct NamingHint {
  Words words;
  const char* why;
  bool is_name;
};

std::vector<NamingHint> naming_hints_of(const fs::path& transformer) {
  const auto stem = is_weights_name(transformer) ? transformer.stem() : transformer.filename();
  std::vector<NamingHint> hints = {{words_of_name(stem.string()), "by its name", true}};
  if (const auto repository = hub_repository(transformer); !repository.empty())
    hints.push_back({words_of_name(fs::path(repository).filename().string()),
                     "by its repository's name", true});
  Words notes;
  for (const auto& note : naming_notes(open_weights(transformer, "diffusion_pytorch_model")))
    for (const auto& word : words_of_name(note)) notes.push_back(word);
  hints.push_back({notes, "by its metadata", false});
  return hints;
}

const Candidate& usual_of(const std::vector<Candidate>& candidates) {
  const auto key = [](const Candidate& c) {
    return std::tuple(!c.guidance_agrees, !is_commonest(directory_name(c.directory)),
                      c.own_words.size());
  };
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

std::string flags_for(const std::vector<const Candidate*>& candidates) {
  std::string flags;
  for (const auto* const candidate : candidates)
    flags += (flags.empty() ? "`components` " : " or `components` ") +
             directory_name(candidate->directory);
  return flags;
}

PublishedChoice choice_of(const Candidate& chosen, const char* why,
                          const std::vector<Candidate>& candidates) {
  PublishedChoice choice{
      .directory = chosen.directory, .why = why, .differences = chosen.differences};
  for (const auto& candidate : candidates)
    if (candidate.directory != chosen.directory)
      choice.others.push_back(directory_name(candidate.directory));
  return choice;
}

}  // namespace

std::vector<fs::path> published_directories(const fs::path& published) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (const auto& entry : entries_in(published, unreadable))
    if (is_model_directory(entry.path())) found.push_back(entry.path());
  check(!unreadable, "cannot read the folder \"", published.string(), "\": ", unreadable.message());
  std::sort(found.begin(), found.end());
  return found;
}

std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : ascii_lower_case(name))
    if (is_ascii_alphanumeric(c)) plain += c;
  return plain;
}

PublishedChoice choose_published(const fs::path& transformer, const fs::path& published) {
  const auto candidates = candidates_for(transformer, published);
  for (const auto& [words, why, is_name] : naming_hints_of(transformer)) {
    const auto spoken = spoken_for(words, is_name, candidates);
    if (spoken.size() == 1) return choice_of(*spoken.front(), why, candidates);
    require(spoken.size() < 2 || !is_name, transformer.string(),
            " has a name that speaks for several models of its shape: say which one it is, with ",
            flags_for(spoken));
  }
  return choice_of(usual_of(candidates), "as the usual model of this shape", candidates);
}

std::string sentence_of_choice(const PublishedChoice& choice, const fs::path& transformer) {
  std::string others;
  for (const auto& other : choice.others) others += (others.empty() ? "" : " or ") + other;
  return text_of(model_name(transformer), " is taken as ", directory_name(choice.directory), ", ",
                 choice.why, choice.differences, "; `components` ", others.empty() ? "DIR" : others,
                 " takes it as another");
}

fs::path published_named(const std::string& name, const fs::path& published) {
  const auto plain = plain_name(name);
  if (plain.empty() || published.empty() || !is_folder(published)) return {};
  for (const auto& directory : published_directories(published)) {
    const auto own = plain_name(directory_name(directory));
    if (own == plain || own == full_name(plain)) return directory;
  }
  const auto same = directory_of_name(plain);
  const bool has_same = !same.empty() && is_model_directory(published / same);
  return has_same ? published / same : fs::path();
}

std::string list_of_published(const fs::path& published) {
  std::string list;
  if (published.empty() || !is_folder(published)) return list;
  for (const auto& directory : published_directories(published))
    list += (list.empty() ? "" : ", ") + directory_name(directory);
  return list;
}

}  // namespace braid
