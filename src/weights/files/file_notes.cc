#include "weights/files/file_notes.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "weights/files/gguf_header.h"
#include "weights/files/safetensors_header.h"

namespace braid {
namespace {

constexpr std::array kNamingKeys = {"modelspec.title",
                                    "modelspec.architecture",
                                    "modelspec.implementation",
                                    "title",
                                    "name",
                                    "model_name",
                                    "architecture",
                                    "base_model",
                                    "ss_base_model_version",
                                    "ss_sd_model_name",
                                    "_name_or_path",
                                    "model_type",
                                    "general.name",
                                    "general.basename",
                                    "general.finetune",
                                    "general.base_model.0.name"};

using Notes = std::map<std::string, std::string>;

bool is_naming(std::string_view key) {
  return std::find(kNamingKeys.begin(), kNamingKeys.end(), key) != kNamingKeys.end();
}

// ModelSpec's "modelspec.hash_sha256", sd-scripts' "sshs_model_hash", ComfyUI's
// "_quantization_...".
bool is_of_bytes(std::string_view key) {
  const auto has = [&](std::string_view word) { return key.find(word) != key.npos; };
  return has("hash") || has("quantization") || key == "modelspec.dtype" || key == "format";
}

std::span<const std::byte> first_file(const Checkpoint& checkpoint) {
  const auto& tensors = checkpoint.tensors();
  return tensors.empty() ? std::span<const std::byte>() : tensors.begin()->second.file->bytes();
}

Notes notes_in(std::span<const std::byte> file) {
  if (file.empty()) return {};
  return begins_as_gguf(file) ? gguf_notes(file) : safetensors_notes(file);
}

}  // namespace

std::vector<std::string> naming_notes(const Checkpoint& checkpoint) {
  std::vector<std::string> naming;
  for (const auto& [key, text] : notes_in(first_file(checkpoint)))
    if (is_naming(key)) naming.push_back(text);
  return naming;
}

Notes lasting_notes(const Checkpoint& checkpoint) {
  const auto file = first_file(checkpoint);
  auto notes = notes_in(file);
  std::erase_if(notes, [&](const auto& note) {
    return begins_as_gguf(file) ? !is_naming(note.first) : is_of_bytes(note.first);
  });
  return notes;
}

}  // namespace braid
