#include "app/print/model_info.h"

#include <c10/core/ScalarType.h>

#include "base/json.h"
#include "pipeline/families/family.h"

namespace braid {
namespace {

OrderedJson ordered(const Json& json) { return OrderedJson::parse(json.dump()); }

// What a file says; null where there is no such file.
OrderedJson contents(const std::filesystem::path& path) {
  return std::filesystem::exists(path) ? ordered(read_json(path)) : OrderedJson();
}

OrderedJson part_info(const Checkpoint& checkpoint, const OrderedJson& config) {
  return {{"parameters", checkpoint.num_parameters()},
          {"bytes", checkpoint.num_bytes()},
          {"dtype", c10::getDtypeNames(checkpoint.dtype()).first},
          {"config", config}};
}

}  // namespace

OrderedJson model_info(const PipelineOptions& options) {
  const auto files = find_model(options);
  const auto family = open_family(files);
  const auto part = [&](const std::string& name, const Checkpoint& checkpoint) {
    return part_info(checkpoint, contents(files.config_of(name)));
  };
  OrderedJson parts;
  for (const auto& described : family->description().parts)
    parts[described.folder] = part(described.folder, files.open(described.folder));
  std::int64_t parameters = 0, bytes = 0;
  for (const auto& info : parts) {
    parameters += info["parameters"].get<std::int64_t>();
    bytes += info["bytes"].get<std::int64_t>();
  }
  return {{"path", options.model.string()},
          {"family", family->description().family},
          {"parameters", parameters},
          {"bytes", bytes},
          {"parts", parts},
          {"scheduler", contents(files.folder / "scheduler" / "scheduler_config.json")},
          {"defaults", contents(files.folder / "generation_config.json")}};
}

}  // namespace braid
