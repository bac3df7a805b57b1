#include "app/commands/commands.h"

#include <nlohmann/json.hpp>

#include "app/commands/deployments.h"
#include "app/commands/plan_here.h"
#include "app/print/info/adapter_info.h"
#include "app/print/info/machine_info.h"
#include "app/print/info/model_info.h"
#include "app/print/info/preset_info.h"
#include "app/print/readable_json.h"
#include "app/print/standard_output.h"
#include "base/error.h"
#include "base/file.h"
#include "image/picture_file.h"
#include "pipeline/files/model_folder.h"
#include "weights/adapters/adapter_file.h"
#include "weights/files/folder_files.h"

namespace braid {
namespace {

constexpr std::uint64_t kLargestPicture = 1u << 30;  // bytes

OrderedJson picture_info(const std::filesystem::path& path) {
  std::error_code missing;
  require(!std::filesystem::is_directory(path, missing), path.string(),
          " is a folder: braid info --model ", path.string(), " describes a model");
  OrderedJson info = {{"path", path.string()}};
  for (const auto& [key, value] :
       read_picture_text(read_file(path, kLargestPicture), path.string()))
    info[key] = value;
  require(info.size() > 1, path.string(), " does not say how it was made: it has no text");
  return info;
}

OrderedJson file_info(const std::filesystem::path& path) {
  if (is_folder(path) && kind_of_folder(path).role == FileRole::kAdapter)
    return adapter_info(adapter_in(path));
  if (!is_weights_name(path)) return picture_info(path);
  const bool is_lora = is_safetensors_name(path) && is_adapter(Checkpoint::open_file(path));
  return is_lora ? adapter_info(path) : weights_info(path);
}

OrderedJson info_of(const InfoFlags& flags) {
  if (flags.presets) return list_of_presets();
  if (!flags.file.empty()) return file_info(flags.file);
  return machine_info();
}

std::string summary(const Deployment& deployment) {
  const auto budget = budget_here(deployment.places.devices.front());
  return model_summary(model_info(deployment)) + "  here              it " +
         plan_here(deployment, budget).sentence +
         "\n  (--verbose or --json: the whole configuration)\n";
}

}  // namespace

int info(const InfoFlags& flags) {
  const bool has_model = !flags.options.model.empty() || !flags.options.comfy.empty();
  require(int(!flags.file.empty()) + int(has_model) + int(flags.presets) <= 1,
          "braid info describes a file, a model or the presets: give one of them");
  std::optional<Deployment> deployment;
  if (has_model) deployment = deployed(flags);
  if (has_model && !flags.json && !flags.verbose) {
    print(summary(*deployment));
    return 0;
  }
  auto info = info_of(flags);
  if (has_model) info["model"] = model_info(*deployment);
  print(flags.json ? indented_json(info) : readable_json(info));
  return 0;
}

}  // namespace braid
