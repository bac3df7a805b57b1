#include "weights/files/file_notes.h"

#include <algorithm>
#include <array>
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

}  // namespace

std::vector<std::string> naming_notes(const Checkpoint& checkpoint) {
  if (checkpoint.tensors().empty()) return {};
  const auto bytes = checkpoint.tensors().begin()->second.file->bytes();
  const auto notes = begins_as_gguf(bytes) ? gguf_notes(bytes) : safetensors_notes(bytes);
  std::vector<std::string> naming;
  for (const auto& [key, text] : notes)
    if (std::find(kNamingKeys.begin(), kNamingKeys.end(), std::string_view(key)) !=
        kNamingKeys.end())
      naming.push_back(text);
  return naming;
}

}  // namespace braid
