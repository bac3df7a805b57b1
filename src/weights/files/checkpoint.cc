#include "weights/files/checkpoint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/foreign_file.h"
#include "base/json.h"
#include "weights/files/folder_files.h"
#include "weights/files/gguf_header.h"
#include "weights/files/other_codings.h"
#include "weights/files/packed_weights.h"
#include "weights/files/safetensors_header.h"
#include "weights/files/scaled_weights.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  return count;
}

// The shards an index names, each a plain file name beside the index.
std::set<std::string> shards_of(const Json& index, const std::string& source) {
  const JsonObject object(index, source);
  const JsonObject map(object.at("weight_map"), source + ": 'weight_map'");
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : map.json().items()) {
    require(shard.is_string(), source, ": the shard of '", tensor, "' should be a file name");
    const auto name = shard.get<std::string>();
    const bool is_file_name = fs::path(name).filename() == name && name != "." && name != "..";
    require(is_file_name && !name.empty(), source, ": the shard '", name,
            "' should be a file name without a folder");
    shards.insert(name);
  }
  require(!shards.empty(), source, " names no shards");
  return shards;
}

// Whether the shards of an index are read although a single file of the same name is there, too:
// diffusers takes an index first, transformers, whose files are called "model", the single file. An
// index whose shards are not all there was left over.
bool is_index_taken(const fs::path& index, const std::string& stem) {
  if (stem != "diffusion_pytorch_model") return false;
  const auto shards = shards_of(read_json(index), index.string());
  return std::all_of(shards.begin(), shards.end(), [&](const std::string& shard) {
    return is_there(index.parent_path() / shard);
  });
}

// A header of more bytes than any has is something else: text, an archive.
bool may_be_safetensors(std::span<const std::byte> file) {
  return file.size() > 8 && file[8] == std::byte('{') && file[7] == std::byte(0);
}

std::vector<TensorEntry> parse_header(std::span<const std::byte> file, const fs::path& path) {
  if (!begins_as_gguf(file) && !may_be_safetensors(file)) {
    const auto foreign = foreign_format(file);
    require(foreign.empty(), path.string(), " is not a ",
            path.extension() == ".gguf" ? "GGUF" : "safetensors", " file: it ", foreign);
  }
  if (begins_as_gguf(file) || path.extension() == ".gguf")
    return parse_gguf_header(file, path.string());
  return parse_safetensors_header(file, path.string());
}

// The dtype LibTorch uses for the elements in place; none if it cannot compute with them.
std::optional<at::ScalarType> dtype_of(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return at::kBool;
    case ElementType::kUint8:
      return at::kByte;
    case ElementType::kInt8:
      return at::kChar;
    case ElementType::kInt16:
      return at::kShort;
    case ElementType::kInt32:
      return at::kInt;
    case ElementType::kInt64:
      return at::kLong;
    case ElementType::kFloat8E4M3:
      return at::kFloat8_e4m3fn;
    case ElementType::kFloat8E5M2:
      return at::kFloat8_e5m2;
    case ElementType::kFloat8E8M0:
      return at::kFloat8_e8m0fnu;
    case ElementType::kFloat16:
      return at::kHalf;
    case ElementType::kBfloat16:
      return at::kBFloat16;
    case ElementType::kFloat32:
      return at::kFloat;
    case ElementType::kFloat64:
      return at::kDouble;
    default:
      return {};
  }
}

at::ScalarType dtype_of(const StoredTensor& stored) {
  const auto dtype = dtype_of(stored.entry.type);
  require(dtype.has_value(), stored.file->path().string(), ": tensor '", stored.entry.name,
          "' has the dtype ", element_type_name(stored.entry.type), ", which Braid cannot read");
  return *dtype;
}

}  // namespace

bool StoredTensor::is_quantized() const {
  return scales || packed || is_of_blocks(entry.type) || rotated_together ||
         arrangement == Arrangement::kTiles;
}

bool StoredTensor::is_readable() const {
  return is_quantized() || dtype_of(entry.type).has_value();
}

at::ScalarType StoredTensor::dtype() const { return is_quantized() ? at::kFloat : dtype_of(*this); }

Tensor StoredTensor::view() const {
  check(!is_quantized(), "tensor '", entry.name, "' is coded, its bytes are not its numbers");
  return stored_view();
}

Tensor StoredTensor::stored_view() const {
  auto* const data = const_cast<std::byte*>(file->bytes().data()) + entry.begin;
  const auto keep = file;
  return at::from_blob(
      data, entry.shape, [keep](void*) {}, at::TensorOptions(dtype_of(*this)));
}

bool StoredTensor::is_aligned() const {
  return entry.begin % std::uint64_t(block_of(entry.type).bytes) == 0;
}

Checkpoint Checkpoint::open(const fs::path& folder, const std::string& stem) {
  const auto single = folder / (stem + ".safetensors");
  const auto index = folder / (stem + ".safetensors.index.json");
  const bool has_both = is_there(single) && is_there(index);
  if (has_both && is_index_taken(index, stem)) return open_index(index).noting(index, {single});
  const auto found = find_weights(folder, stem);
  if (found.is_empty()) {
    const auto there = what_lies_there(folder);
    throw InputError(text_of("no weights in ", folder.string(), ": neither ", stem,
                             ".safetensors nor ", stem, ".safetensors.index.json nor ", stem,
                             ".gguf is there", there.empty() ? "" : "; ", there));
  }
  if (!found.index.empty()) return open_index(found.index).noting(found.index, found.left_alone);
  const auto& first = found.files.front();
  if (found.files.size() == 1)
    return open_file(first).noting(first, has_both ? std::vector{index} : found.left_alone);
  Checkpoint checkpoint(folder.string());
  for (const auto& file : found.files) checkpoint.add(file);
  checkpoint.join(first);
  return std::move(checkpoint).noting(first, found.left_alone);
}

Checkpoint Checkpoint::open_index(const fs::path& index) {
  const auto json = read_json(index);
  Checkpoint checkpoint(index.string());
  for (const auto& shard : shards_of(json, index.string())) {
    const auto path = index.parent_path() / shard;
    require(is_there(path), "the shard ", path.string(), ", which ", index.filename().string(),
            " names, is missing");
    checkpoint.add(path);
  }
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    const auto* const stored = checkpoint.find(tensor);
    if (!stored) {
      checkpoint.absent_.emplace(tensor, shard.get<std::string>());
      continue;
    }
    require(stored->file->path().filename() == shard.get<std::string>(), index.string(),
            ": tensor '", tensor, "' is not in ", shard.get<std::string>());
  }
  checkpoint.join(index);
  return checkpoint;
}

Checkpoint Checkpoint::open_file(const fs::path& path) {
  Checkpoint checkpoint(path.string());
  checkpoint.add(path);
  checkpoint.join(path);
  return checkpoint;
}

void Checkpoint::join(const fs::path& source) {
  joined_ = join_packed(tensors_);
  refuse_other_coding(tensors_, source);
  joined_.merge(join_scales(tensors_));
}

Checkpoint Checkpoint::noting(const fs::path& read, const std::vector<fs::path>& left_alone) && {
  std::string names;
  for (const auto& file : left_alone)
    names += (names.empty() ? "" : ", ") + file.filename().string();
  if (!names.empty())
    note_ = text_of("the weights are read from ", read.string(), "; ", names, " beside it ",
                    left_alone.size() == 1 ? "is" : "are", " left alone");
  return std::move(*this);
}

void Checkpoint::add(const fs::path& path) {
  require_complete_download(path);
  const auto file = std::make_shared<const MappedFile>(path);
  for (auto& entry : parse_header(file->bytes(), path)) {
    const auto name = entry.name;
    const auto [it, is_new] = tensors_.emplace(name, StoredTensor{file, std::move(entry)});
    require(is_new, "tensor '", name, "' is in two shards, ", it->second.file->path().string(),
            " and ", path.string());
  }
}

Checkpoint Checkpoint::without(const std::vector<std::string>& prefixes) const {
  auto rest = *this;
  const auto is_left_out = [&](const auto& tensor) {
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [&](const std::string& prefix) { return tensor.first.starts_with(prefix); });
  };
  std::erase_if(rest.tensors_, is_left_out);
  std::erase_if(rest.joined_, is_left_out);
  std::erase_if(rest.absent_, is_left_out);
  return rest;
}

Checkpoint Checkpoint::part(const std::string& prefix) const {
  Checkpoint part(source_);
  part.note_ = note_;
  const auto take = [&](const auto& from, auto& to) {
    for (const auto& [name, value] : from)
      if (name.starts_with(prefix)) to.emplace(name.substr(prefix.size()), value);
  };
  take(tensors_, part.tensors_);
  take(joined_, part.joined_);
  take(absent_, part.absent_);
  return part;
}

const StoredTensor* Checkpoint::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

std::vector<const TensorEntry*> Checkpoint::entries() const {
  std::vector<const TensorEntry*> all;
  for (const auto* const stored_by_name : {&tensors_, &joined_})
    for (const auto& [name, stored] : *stored_by_name) all.push_back(&stored.entry);
  return all;
}

std::uint64_t Checkpoint::num_bytes() const {
  std::uint64_t total = 0;
  for (const auto* const entry : entries()) total += entry->size;
  return total;
}

std::int64_t Checkpoint::num_parameters() const {
  std::int64_t total = 0;
  for (const auto& [name, stored] : tensors_) total += count_of(stored.entry.shape);
  return total;
}

at::ScalarType Checkpoint::dtype() const {
  std::map<at::ScalarType, std::int64_t> parameters;
  for (const auto& [name, stored] : tensors_) {
    if (!stored.is_readable()) continue;
    const auto dtype = stored.is_quantized() ? at::kBFloat16 : stored.dtype();
    if (at::isFloatingType(dtype) && !name.ends_with("_scale"))
      parameters[dtype] += count_of(stored.entry.shape);
  }
  auto most = std::pair(at::kFloat, std::int64_t(0));
  for (const auto& [dtype, count] : parameters)
    if (count > most.second) most = {dtype, count};
  return most.first;
}

}  // namespace braid
