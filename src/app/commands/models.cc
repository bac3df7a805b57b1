#include <algorithm>

#include "app/commands/commands.h"
#include "app/commands/plan_here.h"
#include "app/machine/bundled_model.h"
#include "app/print/failure.h"
#include "app/print/readable_json.h"
#include "app/print/standard_output.h"
#include "app/words/readable.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "models/kinds/file_kind.h"
#include "pipeline/deployment/deployment.h"
#include "pipeline/families/comfy_folders.h"
#include "pipeline/files/comfy_files.h"
#include "pipeline/files/model_folder.h"
#include "pipeline/files/published.h"
#include "pipeline/planner/job.h"
#include "weights/files/folder_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// One line of the list.
struct ListedModel {
  std::string name;         // that --model takes
  std::string source;       // "cache", "comfy", "published" or "bundled"
  fs::path path;            // empty: no weights are here
  std::string family = {};  // of a model that Braid runs
  std::string is = {};      // of other files: "a LoRA"
  std::int64_t bytes = 0;   // of weights; 0: unknown
  PlanHere fit = {};        // for models; else why it does not run
};

std::int64_t bytes_of_files(const fs::path& path) {
  std::error_code unreadable;
  if (fs::is_regular_file(path, unreadable)) return std::int64_t(fs::file_size(path, unreadable));
  std::int64_t bytes = 0;
  for (const auto& file : files_below(path))
    if (is_weights_name(file)) bytes += std::int64_t(fs::file_size(file, unreadable));
  return bytes;
}

PlanHere plan_of(const Deployment& deployment) {
  return plan_here(deployment, budget_here(deployment.places.devices.front()));
}

// Says why where it cannot be run.
ListedModel deployable(ListedModel model, const PipelineOptions& options) {
  try {
    const auto deployment = deploy(with_bundled(options));
    model.family = deployment.family->description().family;
    model.bytes = deployment.stored_bytes();
    model.fit = plan_of(deployment);
  } catch (const InputError& refusal) {
    model.bytes = bytes_of_files(model.path);
    model.fit.sentence = with_flags(refusal.what());
  }
  return model;
}

// What a file is, or a sentence saying why it cannot be read.
struct KindOrDamage {
  FileKind kind = {};
  std::string damage = {};
};

KindOrDamage look_at(const fs::path& file) {
  try {
    return {.kind = kind_of_file(Checkpoint::open_file(file))};
  } catch (const InputError& error) {
    return {.damage = error.what()};
  }
}

class ModelList {
 public:
  void add_bundled() {
    const auto path = bundled_model_if_there();
    if (path.empty()) return;
    models_.push_back(
        deployable({.name = path.string(), .source = "bundled", .path = path}, {.model = path}));
  }

  void add_cache() {
    const auto cache = hub_cache();
    if (auto why = why_unlisted(cache); !why.empty())
      add_unread({.name = cache.string(), .source = "cache", .path = cache}, std::move(why));
    for (const auto& revision : revisions_in_hub(cache)) try {
        require(revision.unlisted.empty(), revision.unlisted);
        add_revision(revision);
      } catch (const InputError& error) {
        add_unread({.name = revision.name, .source = "cache", .path = revision.snapshot},
                   error.what());
      }
  }

  void add_comfy(const fs::path& given) {
    const auto folder = comfy_models(given);
    const auto there = weights_below(comfy_folders(folder, comfy::kModels));
    for (const auto& file : there.files) {
      const auto [kind, damage] = look_at(file);
      ListedModel model{
          .name = file.filename().string(), .source = "comfy", .path = file, .family = kind.family};
      if (kind.role == FileRole::kModel && !kind.family.empty()) {
        models_.push_back(deployable(std::move(model), {.model = file, .comfy = folder}));
      } else if (kind.role != FileRole::kUnknown) {
        model.is = kind.name;
        model.bytes = bytes_of_files(file);
        models_.push_back(std::move(model));
      } else if (!damage.empty()) {
        add_unread(std::move(model), damage);
      }
    }
    for (const auto& [path, sentence] : there.unread)
      add_unread({.name = path.filename().string(), .source = "comfy", .path = path}, sentence);
  }

  // Their weights are not here, so that their sizes are those of bfloat16.
  void add_published() {
    const auto published = published_models_if_there();
    if (published.empty()) return;
    for (const auto& folder : published_directories(published))
      models_.push_back(published_model(folder.filename().string(), folder));
  }

  const std::vector<ListedModel>& models() const { return models_; }

 private:
  void add_model(const std::string& name, const fs::path& path) {
    models_.push_back(deployable({.name = name, .source = "cache", .path = path}, {.model = path}));
  }

  // What is no model that can be named, but should not be missed: damaged, or not to be read.
  void add_unread(ListedModel model, std::string why) {
    model.fit.sentence = std::move(why);
    models_.push_back(std::move(model));
  }

  void add_revision(const CachedRevision& revision) {
    if (is_model_directory(revision.snapshot)) return add_model(revision.name, revision.snapshot);
    const auto kind = kind_of_folder(revision.snapshot);
    if (kind.role == FileRole::kModel) return add_model(revision.name, revision.snapshot);
    if (kind.role == FileRole::kUnknown) return add_files(revision);
    add_other(revision.name, revision.snapshot, kind);
  }

  void add_other(const std::string& name, const fs::path& path, const FileKind& kind) {
    models_.push_back({.name = name,
                       .source = "cache",
                       .path = path,
                       .is = kind.name,
                       .bytes = bytes_of_files(path)});
  }

  // Files of weights that lie alone in a repository.
  void add_files(const CachedRevision& revision) {
    const auto there = weights_below({revision.snapshot});
    const bool is_alone = there.files.size() + there.unread.size() == 1;
    const auto name_of_file = [&](const fs::path& file) {
      const auto inside = file.lexically_relative(revision.snapshot).string();
      const auto at = revision.name.find('@');
      return is_alone ? revision.name
                      : revision.name.substr(0, at) + "/" + inside +
                            (at == std::string::npos ? "" : revision.name.substr(at));
    };
    for (const auto& file : there.files) {
      const auto name = name_of_file(file);
      const auto [kind, damage] = look_at(file);
      if (kind.role == FileRole::kModel && !kind.family.empty()) {
        add_model(name, file);
        if (models_.back().family.empty()) models_.back().family = kind.family;
      } else if (kind.role != FileRole::kUnknown) {
        add_other(name, file, kind);
      } else if (!damage.empty()) {
        add_unread({.name = name, .source = "cache", .path = file}, damage);
      }
    }
    for (const auto& [path, sentence] : there.unread)
      add_unread({.name = name_of_file(path), .source = "cache", .path = path}, sentence);
  }

  static ListedModel published_model(const std::string& name, const fs::path& folder) {
    ListedModel model{.name = name, .source = "published", .path = {}};
    const auto& entry = family_of_directory(folder);
    for (const auto& known : entry.published) {
      if (!plain_name(name).ends_with(plain_name(known))) continue;
      const auto deployment = deploy({.pipeline = with_bundled({}), .synthetic = known});
      model.family = deployment.family->description().family;
      const auto job = surveyed(job_of(deployment, {}));
      for (const auto& part : job.tensors->tensors)
        for (const auto& tensor : part.tensors)
          model.bytes += tensor.rows * tensor.columns * tensor.element_bytes();
      model.fit = plan_of(deployment);
    }
    return model;
  }

  std::vector<ListedModel> models_;
};

OrderedJson json_of(const ListedModel& model) {
  OrderedJson json = {{"name", model.name}, {"source", model.source}};
  json["path"] = model.path.empty() ? OrderedJson() : OrderedJson(model.path.string());
  json["family"] = model.family.empty() ? OrderedJson() : OrderedJson(model.family);
  if (!model.is.empty()) json["is"] = model.is;
  json["bytes"] = model.bytes > 0 ? OrderedJson(model.bytes) : OrderedJson();
  json["fits"] = model.fit.fits;
  json["here"] = model.fit.sentence;
  return json;
}

std::string line_of_model(const ListedModel& model) {
  const auto what = model.is.empty() ? (model.family.empty() ? "-" : model.family) : model.is;
  auto line = "  " + left_aligned(one_line(model.name), 44) + " " + left_aligned(what, 10) +
              right_aligned(model.bytes > 0 ? readable_bytes(double(model.bytes)) : "-", 10);
  if (!model.fit.sentence.empty()) line += "  " + one_line(model.fit.sentence, 400);
  return line + "\n";
}

std::string section(const std::vector<ListedModel>& models, const std::string& source,
                    const std::string& heading) {
  std::string lines;
  for (const auto& model : models)
    if (model.source == source) lines += line_of_model(model);
  return lines.empty() ? "" : heading + "\n" + lines;
}

}  // namespace

int list_models(const ModelsFlags& flags) {
  ModelList list;
  list.add_bundled();
  list.add_cache();
  for (const auto& folder : flags.comfy) list.add_comfy(folder);
  list.add_published();
  const auto& models = list.models();
  if (flags.json) {
    OrderedJson all = OrderedJson::array();
    for (const auto& model : models) all.push_back(json_of(model));
    print(indented_json({{"cache", hub_cache().string()}, {"models", all}}));
    return kSuccess;
  }
  const auto cached = section(models, "cache", "Hugging Face's cache, " + hub_cache().string());
  print(section(models, "bundled", "Comes with Braid") +
        (cached.empty() ? "Hugging Face's cache, " + hub_cache().string() +
                              ": no model; braid pull org/name loads one\n"
                        : cached) +
        section(models, "comfy", "ComfyUI's models folders (--comfy DIR)") +
        section(models, "published",
                "Known by their configuration; their weights in bfloat16, not here"));
  return kSuccess;
}

}  // namespace braid
