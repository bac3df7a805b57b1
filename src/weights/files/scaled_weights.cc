#include "weights/files/scaled_weights.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "weights/files/safetensors_header.h"

namespace braid {
namespace {

using StoredByName = std::map<std::string, StoredTensor>;

constexpr const char* kWeight = ".weight";
constexpr std::int64_t kFloat4Neighbours = 16;  // that share a scale

bool is_float8(ElementType type) {
  return type == ElementType::kFloat8E4M3 || type == ElementType::kFloat8E5M2;
}

std::optional<StoredTensor> taken(StoredByName& tensors, const std::string& name) {
  const auto node = tensors.extract(name);
  if (node.empty()) return {};
  return node.mapped();
}

// A scale as the weight's numbers are multiplied by it: [], [N 1] or [N groups].
std::shared_ptr<const StoredTensor> scale_of(StoredTensor scale, const StoredTensor& weight) {
  auto& shape = scale.entry.shape;
  const auto& of = weight.entry.shape;
  const auto where = text_of(weight.file->path().string(), ": the scale '", scale.entry.name, "'");
  require(at::isFloatingType(scale.dtype()), where, " should hold floating-point numbers, ",
          "its dtype is ", element_type_name(scale.entry.type));
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  const auto rows = of.empty() ? 1 : of[0], columns = of.size() == 2 ? of[1] : 1;
  if (count == 1) {
    shape = {};
  } else if (count == rows && (shape.size() == 1 || shape[0] == rows)) {
    shape = {rows, 1};
  } else {
    const bool fits = of.size() == 2 && shape.size() == 2 && shape[0] == rows && shape[1] > 0 &&
                      columns % shape[1] == 0;
    require(fits, where, " has ", count, " numbers, the ", rows, " rows of ", columns,
            " should have one for all, one a row or some a row");
  }
  return std::make_shared<const StoredTensor>(std::move(scale));
}

// The way in which ComfyUI says that a layer is coded; a reader of those files goes by the shapes
// of the scales, where the way is one it knows.
void check_way(const StoredTensor& said, const StoredTensor& weight) {
  const auto where = text_of(said.file->path().string(), ": '", said.entry.name, "'");
  const auto bytes = said.file->bytes().subspan(said.entry.begin, said.entry.size);
  const auto json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where);
  const auto way = JsonObject(json, where).string("format");
  require(is_float8(weight.entry.type) && way.starts_with("float8_"), where,
          " says that the weight is coded as ", way, ", which Braid cannot read");
}

// Four bits are told from other bytes by their two scales.
void join_float4(StoredByName& tensors, const std::string& base, StoredTensor& weight) {
  auto inner = taken(tensors, base + ".weight_scale");
  auto outer = taken(tensors, base + ".weight_scale_2");
  const auto where = text_of(weight.file->path().string(), ": tensor '", weight.entry.name, "'");
  require(inner && outer && inner->entry.type == ElementType::kFloat8E4M3, where,
          " should hold floating-point numbers, its dtype is U8 without the scales of float4");
  require(safetensors_note(weight.file->bytes(), "_quantization_metadata").empty(), where,
          " is float4 in ComfyUI's order of scales, which Braid cannot read");
  auto& entry = weight.entry;
  require(entry.shape.size() == 2 && entry.shape[1] <= INT64_MAX / 2, where, " should be a matrix");
  entry.type = ElementType::kFloat4E2M1;
  entry.shape[1] *= 2;
  inner->scales = scale_of(std::move(*outer), *inner);
  require(
      inner->entry.shape.size() == 2 && inner->entry.shape[1] * kFloat4Neighbours == entry.shape[1],
      where, " should have a scale for each ", kFloat4Neighbours, " numbers of a row");
  weight.scales = scale_of(std::move(*inner), weight);
}

void join_float8(StoredByName& tensors, const std::string& base, StoredTensor& weight) {
  for (const auto* const spelling : {".weight_scale", ".scale_weight"})
    if (auto scale = taken(tensors, base + spelling)) {
      require(!weight.scales, weight.file->path().string(), ": tensor '", weight.entry.name,
              "' has two scales");
      weight.scales = scale_of(std::move(*scale), weight);
    }
}

}  // namespace

void join_scales(StoredByName& tensors) {
  std::vector<std::string> coded;
  for (const auto& [name, stored] : tensors)
    if (name.ends_with(kWeight) &&
        (is_float8(stored.entry.type) || stored.entry.type == ElementType::kUint8))
      coded.push_back(name);
  for (const auto& name : coded) {
    auto& weight = tensors.at(name);
    const auto base = name.substr(0, name.size() - std::string_view(kWeight).size());
    if (const auto said = taken(tensors, base + ".comfy_quant")) check_way(*said, weight);
    if (weight.entry.type == ElementType::kUint8)
      join_float4(tensors, base, weight);
    else
      join_float8(tensors, base, weight);
    (void)taken(tensors, base + ".input_scale");
    (void)taken(tensors, base + ".scale_input");
  }
  std::erase_if(tensors, [](const auto& one) {  // it marks the whole file
    return one.first == "scaled_fp8" || one.first.ends_with(".scaled_fp8");
  });
}

}  // namespace braid
