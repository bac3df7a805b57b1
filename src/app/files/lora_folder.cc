#include "app/files/lora_folder.h"

#include "base/error.h"
#include "base/folder_entries.h"
#include "base/utf8.h"
#include "weights/files/folder_files.h"

namespace braid {

std::map<std::string, std::filesystem::path> loras_in(const std::filesystem::path& folder) {
  std::map<std::string, std::filesystem::path> loras;
  std::error_code unreadable;
  const auto entries = entries_in(folder, unreadable);
  check(!unreadable, "cannot read the folder of LoRAs, ", folder, ": ", unreadable.message());
  for (const auto& entry : entries) {
    const auto name = entry.path().stem().string();
    std::error_code dangling;
    const bool is_lora =
        is_safetensors_name(entry.path()) && entry.is_regular_file(dangling) && is_valid_utf8(name);
    if (is_lora) loras[name] = entry.path();
  }
  return loras;
}

}  // namespace braid
