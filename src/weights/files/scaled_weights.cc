#include "weights/files/scaled_weights.h"

#include <optional>

#include "base/error.h"
#include "weights/codes/tiles.h"
#include "weights/files/comfy_marks.h"

namespace braid {
namespace {

constexpr const char* kWeight = ".weight";
constexpr const char* kScale = "_scale";  // behind the name of what it scales
constexpr std::int64_t kFloat4Neighbours = 16, kMxNeighbours = 32;  // numbers that share a scale
constexpr std::int64_t kLeastUsualRun = 8;

std::int64_t squares(std::int64_t extent) {
  return extent / kSquareSide + (extent % kSquareSide > 0);
}

bool are_of_squares(const StoredTensor& scale, const StoredTensor& weight) {
  const auto& of = weight.entry.shape;
  return of.size() == 2 && scale.entry.shape == std::vector{squares(of[0]), squares(of[1])};
}

std::string shapes_of_scales(const std::vector<std::int64_t>& of) {
  const auto rows = of.empty() ? 1 : of[0];
  if (of.size() != 2) return text_of("[] (one for all) or [", rows, "] (one per row)");
  return text_of("[] (one for all), [", rows, "] or [", rows, ", 1] (one per row), [", rows,
                 ", N] (N per row) or [", squares(of[0]), ", ", squares(of[1]),
                 "] (one per square of ", kSquareSide, " x ", kSquareSide, ")");
}

bool is_usual_run(std::int64_t neighbours) {
  return neighbours >= kLeastUsualRun && (neighbours & (neighbours - 1)) == 0;
}

std::optional<StoredTensor> taken(StoredByName& tensors, const std::string& name) {
  const auto node = tensors.extract(name);
  if (node.empty()) return {};
  return node.mapped();
}

}  // namespace

std::int64_t neighbours_per_scale(std::int64_t columns, std::int64_t scales) {
  if (scales < 1 || columns < scales) return 0;
  const auto rounded_up = [&](std::int64_t by) { return columns / by + (columns % by > 0); };
  const auto least = rounded_up(scales);
  const auto most = scales == 1 ? columns : rounded_up(scales - 1) - 1;
  if (columns % scales == 0) return least == most || is_usual_run(least) ? least : 0;
  for (auto run = kLeastUsualRun; run <= most; run *= 2)
    if (run >= least) return run;
  return 0;
}

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
  } else if (are_of_squares(scale, weight)) {
    scale.arrangement = Arrangement::kSquares;
  } else {
    const bool has_runs = of.size() == 2 && shape.size() == 2 && shape[0] == rows && shape[1] > 0 &&
                          shape[1] <= columns;
    require(has_runs, where, " should have the shape ", shapes_of_scales(of), ", it has ",
            at::IntArrayRef(shape));
    require(neighbours_per_scale(columns, shape[1]) > 0, where, " has ", shape[1],
            " numbers for each row of ", columns, ": how many neighbours share one should be ",
            "certain, a power of two from ", kLeastUsualRun, " on");
  }
  return std::make_shared<const StoredTensor>(std::move(scale));
}

namespace {

std::string where_of(const StoredTensor& weight) {
  return text_of(weight.file->path().string(), ": tensor '", weight.entry.name, "'");
}

// Scales of blocks of neighbours, in ComfyUI's layout for nvfp4 and mxfp8.
std::shared_ptr<const StoredTensor> scale_in_tiles(StoredTensor scale, const StoredTensor& weight,
                                                   std::int64_t neighbours) {
  const auto rows = weight.entry.shape[0], columns = weight.entry.shape[1];
  const auto where = where_of(scale);
  require(
      columns % neighbours == 0 && bytes_in_tiles(rows, columns / neighbours) == scale.entry.size,
      where, " has ", scale.entry.size, " bytes, in tiles of 128 x 4 a scale for each ", neighbours,
      " of ", rows, " x ", columns, " numbers has ", bytes_in_tiles(rows, columns / neighbours));
  scale.entry.shape = {rows, columns / neighbours};
  scale.arrangement = Arrangement::kTiles;
  return std::make_shared<const StoredTensor>(std::move(scale));
}

// Four-bit weights are recognised among bytes by their two scales.
void join_float4(StoredByName& tensors, const std::string& base, StoredTensor& weight,
                 Arrangement of_scales) {
  auto inner = taken(tensors, base + ".weight_scale");
  auto outer = taken(tensors, base + ".weight_scale_2");
  const auto where = where_of(weight);
  require(inner && outer && inner->entry.type == ElementType::kFloat8E4M3, where,
          " should hold floating-point numbers, its dtype is U8 without the scales of float4");
  auto& entry = weight.entry;
  require(entry.shape.size() == 2 && entry.shape[1] <= INT64_MAX / 2, where, " should be a matrix");
  entry.shape[1] *= 2;
  inner->scales = scale_of(std::move(*outer), *inner);
  if (of_scales == Arrangement::kTiles) {
    entry.type = ElementType::kFloat4E2M1Swapped;
    weight.scales = scale_in_tiles(std::move(*inner), weight, kFloat4Neighbours);
    return;
  }
  entry.type = ElementType::kFloat4E2M1;
  require(
      inner->entry.shape.size() == 2 && inner->entry.shape[1] * kFloat4Neighbours == entry.shape[1],
      where, " should have a scale for each ", kFloat4Neighbours, " numbers of a row");
  weight.scales = scale_of(std::move(*inner), weight);
}

void join_float8(StoredByName& tensors, const std::string& base, StoredTensor& weight) {
  for (const auto* const spelling : {".weight_scale", ".scale_weight", ".weight_scale_inv"})
    if (auto scale = taken(tensors, base + spelling)) {
      require(!weight.scales, weight.file->path().string(), ": tensor '", weight.entry.name,
              "' has two scales");
      weight.scales = scale_of(std::move(*scale), weight);
    }
}

void join_mxfp8(StoredByName& tensors, const std::string& base, StoredTensor& weight) {
  auto scale = taken(tensors, base + ".weight_scale");
  const auto where = where_of(weight);
  require(scale && weight.entry.shape.size() == 2, where,
          " should be a matrix with a 'weight_scale'");
  auto& type = scale->entry.type;
  require(type == ElementType::kUint8 || type == ElementType::kFloat8E8M0, where,
          " should have scales that are powers of two, their dtype is ", element_type_name(type));
  type = ElementType::kFloat8E8M0;
  weight.scales = scale_in_tiles(std::move(*scale), weight, kMxNeighbours);
}

// Unrotated codes with one scale per row are Braid's own form: they stay two tensors.
void join_int8(StoredByName& tensors, const std::string& base, StoredTensor& weight) {
  const auto name = base + ".weight_scale";
  auto scale = taken(tensors, name);
  const auto where = where_of(weight);
  require(scale && weight.entry.shape.size() == 2, where,
          " should be a matrix with a 'weight_scale'");
  const auto joined = scale_of(std::move(*scale), weight);
  const std::vector<std::int64_t> of_rows = {weight.entry.shape[0], 1};
  if (joined->entry.shape == of_rows && !weight.rotated_together)
    tensors.emplace(name, *joined);
  else
    weight.scales = joined;
}

void check_rotation(const StoredTensor& weight, const ComfyMark& mark) {
  const auto& shape = weight.entry.shape;
  if (!mark.rotated_together) return;
  require(shape.size() == 2 && shape[1] % mark.rotated_together == 0, mark.where, " rotates ",
          mark.rotated_together, " neighbours together, but rows of ",
          shape.empty() ? 1 : shape.back(), " numbers are not a multiple of that");
}

void join(StoredByName& tensors, const std::string& base, StoredTensor& weight,
          const std::optional<ComfyMark>& mark) {
  const auto type = weight.entry.type;
  if (mark) weight.rotated_together = mark->rotated_together;
  const auto says = [&](const char* format) { return mark && mark->format == format; };
  if (says("nvfp4") && type == ElementType::kUint8)
    join_float4(tensors, base, weight, Arrangement::kTiles);
  else if (says("mxfp8") && type == ElementType::kFloat8E4M3)
    join_mxfp8(tensors, base, weight);
  else if (says("int8_tensorwise") && type == ElementType::kInt8)
    join_int8(tensors, base, weight);
  else if (is_float8(type) && (!mark || mark->format.starts_with("float8_"))) {
    join_float8(tensors, base, weight);
    // Without a mark the codes are the numbers, and ComfyUI's oldest files mean a scale of 1. A
    // marked layer without its scale is no layer there either.
    require(!mark || weight.scales, mark ? mark->where : "", " says that a weight is coded as ",
            mark ? mark->format : "", ", but its scale '", base, ".weight_scale' is not there");
  } else if (mark)
    throw OtherCoding(text_of(mark->where, " says that a weight of the dtype ",
                              element_type_name(type), " is coded as ", mark->format,
                              ", which Braid cannot read"));
  else if (type == ElementType::kUint8)
    join_float4(tensors, base, weight, Arrangement::kRows);
}

// Names of the tensors that may be coded, in order: those called weights, and others with a scale.
struct Coded {
  std::vector<std::string> weights, others;
};

Coded coded_of(const StoredByName& tensors) {
  Coded coded;
  for (const auto& [name, stored] : tensors) {
    const auto type = stored.entry.type;
    const bool is_byte = type == ElementType::kUint8 || type == ElementType::kInt8;
    if (stored.packed) continue;
    if (name.ends_with(kWeight) && (is_float8(type) || is_byte))
      coded.weights.push_back(name);
    else if (is_float8(type) && tensors.contains(name + kScale))
      coded.others.push_back(name);
  }
  return coded;
}

void join_weights(StoredByName& tensors, const std::vector<std::string>& coded) {
  ComfyMarks marks;
  for (const auto& name : coded) {
    auto& weight = tensors.at(name);
    const auto base = name.substr(0, name.size() - std::string_view(kWeight).size());
    const auto mark = marks.take(tensors, base, weight);
    require(mark || weight.entry.type != ElementType::kUint8 || !marks.has_note(weight),
            where_of(weight), " has a dtype of U8, and '_quantization_metadata' does not say why");
    join(tensors, base, weight, mark);
    if (mark) check_rotation(weight, *mark);
    for (const auto* const of_x : {".input_scale", ".scale_input", ".activation_scale"})
      (void)taken(tensors, base + of_x);
  }
}

}  // namespace

StoredByName join_scales(StoredByName& tensors) {
  const auto coded = coded_of(tensors);
  auto removed = coded.weights.empty() && coded.others.empty() ? StoredByName() : tensors;
  join_weights(tensors, coded.weights);
  for (const auto& name : coded.others)
    if (auto scale = taken(tensors, name + kScale))
      tensors.at(name).scales = scale_of(std::move(*scale), tensors.at(name));
  std::erase_if(tensors, [](const auto& one) {  // marks the whole file
    return one.first == "scaled_fp8" || one.first.ends_with(".scaled_fp8");
  });
  std::erase_if(removed, [&](const auto& one) { return tensors.contains(one.first); });
  return removed;
}

StoredByName with_int8_joined(StoredByName tensors) {
  std::vector<std::string> coded;
  for (const auto& [name, stored] : tensors)
    if (stored.entry.type == ElementType::kInt8 && !stored.is_quantized() &&
        tensors.contains(name + kScale))
      coded.push_back(name);
  for (const auto& name : coded)
    tensors.at(name).scales = scale_of(*taken(tensors, name + kScale), tensors.at(name));
  return tensors;
}

}  // namespace braid
