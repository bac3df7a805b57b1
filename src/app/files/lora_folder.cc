#include "app/files/lora_folder.h"

#include "base/utf8.h"
#include "weights/files/folder_files.h"

namespace braid {

std::map<std::string, std::filesystem::path> loras_in(const std::filesystem::path& folder) {
  std::map<std::string, std::filesystem::path> loras;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
    const auto name = entry.path().stem().string();
    const bool is_lora = is_safetensors_name(entry.path()) && entry.is_regular_file(unreadable) &&
                         is_valid_utf8(name);
    if (is_lora) loras[name] = entry.path();
  }
  return loras;
}

}  // namespace braid
