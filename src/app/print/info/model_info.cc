#include "app/print/info/model_info.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "app/words/readable.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "models/kinds/file_kind.h"
#include "weights/files/other_codings.h"

namespace braid {
namespace {

// Numbers that JSON does not have become texts: null would say that they are unset.
void name_not_finite(Json& json) {
  const bool is_named = json.is_number_float() && !std::isfinite(json.get<double>());
  if (is_named) json = json_text(json);
  if (!json.is_structured()) return;
  for (auto& item : json) name_not_finite(item);
}

OrderedJson ordered(Json json) {
  name_not_finite(json);
  return OrderedJson::parse(json.dump());
}

// A file's contents; null if there is no such file.
OrderedJson contents(const std::filesystem::path& path) {
  return is_there(path) ? ordered(read_json(path)) : OrderedJson();
}

// Tensors and bytes of each stored type, most bytes first.
OrderedJson types_of(const Checkpoint& checkpoint) {
  struct Stored {
    std::int64_t tensors = 0, bytes = 0;
  };
  std::map<std::string, Stored> by_name;
  for (const auto* const entry : checkpoint.entries()) {
    auto& of_type = by_name[element_type_name(entry->type)];
    ++of_type.tensors;
    of_type.bytes += std::int64_t(entry->size);
  }
  std::vector<std::pair<std::string, Stored>> types(by_name.begin(), by_name.end());
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  OrderedJson json;
  for (const auto& [name, stored] : types)
    json[name] = {{"tensors", stored.tensors}, {"bytes", stored.bytes}};
  return json;
}

OrderedJson part_info(const Checkpoint& checkpoint, const OrderedJson& config) {
  return {{"parameters", checkpoint.num_parameters()},
          {"bytes", checkpoint.num_bytes()},
          {"dtype", c10::getDtypeNames(checkpoint.dtype()).first},
          {"types", types_of(checkpoint)},
          {"config", config}};
}

// The levels that one of several denoisers serves; 1 is noise alone.
OrderedJson noise_levels_of(const Served& serves) {
  return {{"from", serves.from}, {"to", serves.to}};
}

OrderedJson request_info(const RequestDefaults& d) {
  return {{"width", d.width},
          {"height", d.height},
          {"steps", d.steps},
          {"guidance", d.guidance},
          {"max_sequence_length", d.max_sequence_length}};
}

// The dtype of plain numbers, or the types in files of coded ones: "Q4_K, Q6_K, F32".
std::string type_words(const OrderedJson& part) {
  const auto& types = part["types"];
  const auto most = types.empty() ? "" : types.items().begin().key();
  if (most.empty() || most == "BF16" || most == "F16" || most == "F32" || most == "I8")
    return part["dtype"].get<std::string>();
  std::string words;
  for (const auto& [name, of_type] : types.items()) words += (words.empty() ? "" : ", ") + name;
  return words;
}

std::string line_of(const std::string& name, const OrderedJson& part) {
  auto type = part.contains("types") ? "  " + type_words(part) : "";
  if (part.contains("noise_levels"))
    type += text_of("  noise ", part["noise_levels"]["from"].dump(), " to ",
                    part["noise_levels"]["to"].dump());
  return "  " + left_aligned(name, 18) +
         right_aligned(readable_count(part["parameters"].get<std::int64_t>()), 15) + " parameters" +
         right_aligned(readable_bytes(part["bytes"].get<double>()), 10) + type + "\n";
}

}  // namespace

std::string model_summary(const OrderedJson& model) {
  const auto& request = model["request"];
  auto text =
      model["family"].get<std::string>() + ", " + one_line(model["path"].get<std::string>()) + "\n";
  for (const auto& [name, part] : model["parts"].items()) text += line_of(name, part);
  text += line_of("together", model) + "  " + left_aligned("picture", 18);
  return text + request["width"].dump() + "x" + request["height"].dump() + ", " +
         plural(request["steps"].get<std::int64_t>(), "step") + ", guidance " +
         request["guidance"].dump() + "\n";
}

OrderedJson weights_info(const std::filesystem::path& path) {
  const auto file = Checkpoint::open_file(path);
  const auto kind = kind_of_file(file).name;
  OrderedJson info = {{"path", path.string()},
                      {"is", kind.empty() ? "unknown" : kind},
                      {"tensors", file.entries().size()},
                      {"parameters", file.num_parameters()},
                      {"bytes", file.num_bytes()},
                      {"types", types_of(file)}};
  if (const auto lacking = codes_without_scales(file.tensors()); !lacking.empty())
    info["lacking"] = lacking;
  return info;
}

OrderedJson model_info(const Deployment& deployment) {
  const auto& files = *deployment.files;
  const auto& family = deployment.family;
  const auto part = [&](const std::string& name, const Checkpoint& checkpoint) {
    auto info = part_info(checkpoint, contents(files.config_of(name)));
    info["path"] = files.path_of(name).string();
    return info;
  };
  OrderedJson parts;
  for (const auto& described : family->description().parts) {
    auto& info = parts[described.folder] = part(described.folder, files.open(described.folder));
    if (described.serves != Served()) info["noise_levels"] = noise_levels_of(described.serves);
  }
  std::int64_t parameters = 0, bytes = 0;
  for (const auto& info : parts) {
    parameters += info["parameters"].get<std::int64_t>();
    bytes += info["bytes"].get<std::int64_t>();
  }
  return {{"path", deployment.options.model.string()},
          {"family", family->description().family},
          {"configuration", files.folder.string()},
          {"parameters", parameters},
          {"bytes", bytes},
          {"parts", parts},
          {"request", request_info(family->description().limits.defaults)},
          {"scheduler", contents(files.folder / "scheduler" / "scheduler_config.json")},
          {"defaults", contents(files.folder / "generation_config.json")}};
}

}  // namespace braid
