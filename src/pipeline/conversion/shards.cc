#include "pipeline/conversion/shards.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "weights/files/safetensors_writer.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Splits the tensors into shards.
std::vector<std::vector<WrittenTensor>> shared_out(const ShardJob& job) {
  std::vector<std::vector<WrittenTensor>> shards(1);
  std::int64_t bytes = 0;
  for (const auto& asked : job.asked) {
    if (bytes > 0 && bytes + bytes_of(asked, Quantize::kNone) > job.shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += bytes_of(asked, Quantize::kNone);
    shards.back().push_back(asked);
  }
  return shards;
}

std::string shard_name(const ShardJob& job, std::size_t index, std::size_t count) {
  if (count == 1) return job.stem + ".safetensors";
  char numbers[32];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu", index + 1, count);
  return job.stem + numbers + ".safetensors";
}

Matrix load(const ShardJob& job, const WrittenTensor& asked) {
  const auto layer = (job.source / asked.layer).as(asked.dtype);
  if (asked.is_matrix()) return layer.matrix(asked.name, asked.shape);
  return {.values_NC = layer.tensor(asked.name, asked.shape)};
}

// The narrowest dtype that holds these rows, which several stored tensors may have a part of.
at::ScalarType dtype_of(const WrittenTensor& asked, const Share& rows) {
  std::optional<at::ScalarType> dtype;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < asked.dtypes.size(); ++i) {
    const auto& shape = asked.plan.stored().tensors[i]->entry.shape;
    const auto end = begin + (shape.empty() ? 1 : shape[0]);
    if (begin < rows.begin + rows.count && rows.begin < end)
      dtype = dtype ? c10::promoteTypes(*dtype, asked.dtypes[i]) : asked.dtypes[i];
    begin = end;
  }
  return dtype.value_or(asked.dtype);
}

std::map<std::string, Tensor> tensors_of(const ShardJob& job,
                                         const std::vector<WrittenTensor>& shard) {
  std::map<std::string, Tensor> tensors;
  for (const auto& asked : shard) {
    const auto loaded = load(job, asked);
    std::int64_t row = 0;
    for (auto& [name, tensor] : spelled(asked, loaded, job.names, job.shardings)) {
      const bool is_float8 = loaded.form == Quantize::kFloat8 && tensor.scalar_type() == at::kByte;
      const auto rows = tensor.dim() == 0 ? 1 : tensor.size(0);
      const auto numbers =
          asked.dtypes.empty() ? tensor : tensor.to(dtype_of(asked, {.begin = row, .count = rows}));
      row += rows;
      const auto dense = numbers.contiguous();
      tensors.emplace(name, is_float8 ? dense.view(at::kFloat8_e4m3fn) : dense);
    }
  }
  return tensors;
}

// Includes scales, which belong to their codes where these are float8.
std::map<std::string, StoredTensor> stored_in(const Checkpoint& file) {
  auto all = file.tensors();
  for (const auto& [name, stored] : file.tensors())
    if (stored.scales) all.emplace(stored.scales->entry.name, *stored.scales);
  return all;
}

// Compares what is on disk with what was meant to be written.
void check_written(const fs::path& path, std::string_view contents, std::size_t tensors) {
  const auto written = stored_in(Checkpoint::open_file(path)).size();
  check(written == tensors, path, " should hold ", tensors, " tensors, it holds ", written);
  const MappedFile file(path);
  const auto bytes = file.bytes();
  check(bytes.size() == contents.size() &&
            std::memcmp(bytes.data(), contents.data(), contents.size()) == 0,
        path, " is not what was written: the disk or the memory of this machine is at fault");
}

constexpr const char* kNote = ".note";

std::string sources_of(const std::vector<WrittenTensor>& shard) {
  std::string sources;
  for (const auto& asked : shard) sources += identity_of(stored_by(asked.plan)) + "\n";
  return digest(std::as_bytes(std::span(sources)));
}

// The note beside a shard: digests of its sources, of the recipe and of the file.
std::string note_of(const ShardJob& job, const fs::path& shard,
                    const std::vector<WrittenTensor>& asked) {
  return "of " + sources_of(asked) + " by " + digest(std::as_bytes(std::span(job.recipe))) + ": " +
         digest(MappedFile(shard).bytes()) + "\n";
}

bool is_there(const ShardJob& job, const fs::path& shard, const std::vector<WrittenTensor>& asked) {
  const auto note = shard.string() + kNote;
  return fs::exists(shard) && fs::exists(note) && read_file(note) == note_of(job, shard, asked);
}

bool is_finite(const Tensor& tensor) {
  if (!tensor.is_floating_point()) return true;
  const bool is_float8 = tensor.element_size() == 1;
  return (is_float8 ? tensor.to(at::kFloat) : tensor).isfinite().all().item<bool>();
}

// Weights that hold such numbers are written as they are, but nobody should learn it from black
// pictures. Adapters must not make any.
void check_numbers(const ShardJob& job, const std::map<std::string, Tensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors)
    if (!is_finite(tensor)) names.push_back(name);
  if (names.empty()) return;
  const auto others = names.size() - 1;
  const auto found = text_of("tensor '", names.front(), "' ",
                             others > 0 ? text_of("and ", others, " more hold") : "holds",
                             " numbers that are not finite");
  require(!job.is_adapted, found, " once the adapters are merged: give them smaller scales, ",
          "or look for the damaged file");
  if (job.warn) job.warn(found);
}

void write_shard(const ShardJob& job, const fs::path& path,
                 const std::vector<WrittenTensor>& asked) {
  auto tensors = tensors_of(job, asked);
  check_numbers(job, tensors);
  const auto count = tensors.size();
  const auto contents = write_safetensors(std::move(tensors), job.notes);
  write_file(path, contents);
  check_written(path, contents, count);
  write_file(path.string() + kNote, note_of(job, path, asked));
}

// An earlier run may have made more shards of another model, which an index would join. Files that
// only begin with the same word are not of the stem's names.
void remove_others(const ShardJob& job, const std::set<std::string>& written) {
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(job.folder)) {
    const auto name = entry.path().filename().string();
    const bool is_ours =
        name.starts_with(job.stem + ".safetensors") || name.starts_with(job.stem + "-");
    if (is_ours && !written.contains(name)) others.push_back(entry.path());
  }
  for (const auto& other : others) fs::remove(other);
}

}  // namespace

void write_shards(const ShardJob& job) {
  fs::create_directories(job.folder);
  auto shards = shared_out(job);
  const auto own = shards.size();
  if (job.rest)
    for (auto& shard : shared_out(*job.rest)) shards.push_back(std::move(shard));
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  std::set<std::string> written;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto& of_shard = i < own ? job : *job.rest;
    const auto name = shard_name(job, i, shards.size());
    const auto path = job.folder / name;
    if (!is_there(of_shard, path, shards[i])) write_shard(of_shard, path, shards[i]);
    written.insert({name, name + kNote});
    for (const auto& [tensor, stored] : stored_in(Checkpoint::open_file(path))) {
      map[tensor] = name;
      total += stored.entry.size;
    }
    for (const auto& asked : shards[i])
      if (job.on_bytes) job.on_bytes(bytes_of(asked, Quantize::kNone));
  }
  remove_others(job, written);
  if (shards.size() == 1) return;
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_file(job.folder / (job.stem + ".safetensors.index.json"), index.dump(2) + "\n");
}

void remove_notes(const fs::path& folder) {
  std::vector<fs::path> notes;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().filename().string().ends_with(std::string(".safetensors") + kNote))
      notes.push_back(entry.path());
  for (const auto& note : notes) fs::remove(note);
}

}  // namespace braid
