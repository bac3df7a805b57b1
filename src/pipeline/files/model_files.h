// Where a model's parts are stored: a directory in the diffusers layout, or single files for some
// parts and such a directory for the rest.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "base/json.h"
#include "braid/braid.h"
#include "pipeline/sampling/schedule.h"
#include "weights/adapters/adapter_file.h"
#include "weights/files/checkpoint_shelf.h"

namespace braid {

using Warn = std::function<void(const std::string&)>;

struct FamilyEntry;
struct Part;
struct RequestDefaults;

// A file of weights, and the prefix of the part's tensor names if it holds other parts too.
struct PartFile {
  std::filesystem::path path;
  std::string prefix = {};
};

struct ModelFiles {
  std::filesystem::path folder;  // the diffusers directory
  // The denoiser, if not in `folder`: a file, or a folder with its own config.json; else empty.
  // Families with several denoisers have them in `folder`.
  std::filesystem::path single_file;
  const FamilyEntry* family = nullptr;  // as model_index.json names it
  // Other parts, by folder, whose weights are in files elsewhere.
  std::map<std::string, PartFile> part_files = {};
  std::vector<std::filesystem::path> controlnets = {};  // their parts are "controlnet_1", ...
  std::filesystem::path redux = {};                     // its folder, if given
  std::vector<AppliedAdapter> adapters = {};            // from the options
  // Shared by copies: whoever asks for a part's weights, their files are opened once.
  std::shared_ptr<CheckpointShelf> opened = std::make_shared<CheckpointShelf>();

  std::filesystem::path config_of(const std::string& part) const;  // FOLDER/PART/config.json
  std::filesystem::path path_of(const std::string& part) const;    // a file, or FOLDER/PART
  // The weights of a part, by its folder.
  Checkpoint open(const std::string& part) const;
  bool has_weights(const std::string& part) const;  // that may be damaged, though

 private:
  std::filesystem::path folder_of(const std::string& part) const;
  bool is_in_single_file(const std::string& part) const;
};

// The parts of Redux.
constexpr const char *kReduxEncoder = "redux/image_encoder",
                     *kReduxEmbedder = "redux/image_embedder";
std::string controlnet_part(std::size_t number);  // from 0 on

// The stem of the file names of a part's weights.
const char* stem_of(const std::string& part);

// Where in the file the part's weights are, or a sentence saying why they are not there.
struct PartSearch {
  std::optional<PartFile> found;
  std::string why_not = {};
};
PartSearch find_part(const std::filesystem::path& file, const Part& part);
// The same where the part's description may depend on the file: the widths of a decoder.
PartSearch find_part_in(const std::filesystem::path& file, const Part& part,
                        const ModelFiles& files);

// A file, or a folder whose file is named after `stem` (folder_files.h).
Checkpoint open_weights(const std::filesystem::path& path, const std::string& stem);

// Throws InputError saying what the file or folder is, unless it has a denoiser of a known family.
void require_denoiser(const std::filesystem::path& path);

// Whether the parts beside a single file's transformer must have weights, too.
enum class WeightsNeeded { kAll, kTransformer };

// The files of options that name them all, except for weights that are to be found. Throws
// InputError.
ModelFiles placed_files(const PipelineOptions& options);

// Adds files of parts beside the denoiser; an empty `vae` is none. Throws InputError if a file
// holds none of them, or a part that another one holds.
void place_parts(const std::vector<std::filesystem::path>& text_encoders,
                 const std::filesystem::path& vae, ModelFiles& files);

// Reads scheduler/scheduler_config.json, as the class that model_index.json names would.
ScheduleConfig read_scheduler(const ModelFiles& files);

// Reads generation_config.json in the model's directory, and takes `published` for what it leaves
// out. Sampling that the adapters name wins.
RequestDefaults read_defaults(const ModelFiles& files, const RequestDefaults& published);

// The defaults with these adapters in place of those that were loaded with the model.
RequestDefaults defaults_with(const std::vector<AppliedAdapter>& adapters,
                              const RequestDefaults& loaded);

}  // namespace braid
