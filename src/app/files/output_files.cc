#include "app/files/output_files.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFewestDigits = 3;

bool is_other_format(const std::string& extension) {
  constexpr std::array names = {".jpg",  ".jpeg", ".webp", ".gif", ".bmp", ".tif",
                                ".tiff", ".avif", ".heic", ".jxl", ".ppm", ".svg"};
  return std::find(names.begin(), names.end(), ascii_lower_case(extension)) != names.end();
}

// Throws InputError unless the missing `folder` could be created now. Leaves nothing behind.
void require_makeable(const fs::path& folder) {
  std::error_code failure;
  auto outermost = folder;  // of the missing folders
  while (outermost.has_parent_path() && !fs::exists(outermost.parent_path(), failure))
    outermost = outermost.parent_path();
  const bool is_made = fs::create_directory(outermost, failure);
  require(!failure, "--output ", folder.string(), ": cannot make the folder ", outermost.string(),
          ": ", failure.message());
  if (is_made) fs::remove(outermost, failure);
}

}  // namespace

OutputFiles::OutputFiles(const fs::path& output, int num_pictures) : num_pictures_(num_pictures) {
  std::error_code missing;
  const bool is_folder = !output.has_filename() || fs::is_directory(output, missing);
  folder_ = is_folder ? output : output.parent_path();
  if (is_folder && !fs::exists(output, missing)) new_folder_ = output.parent_path();
  stem_ = is_folder ? "braid" : output.stem().string();
  extension_ = is_folder ? ".png" : output.extension().string();
  require(!is_other_format(extension_), "--output should end in .png, it is ", output.string(),
          ": pictures are written as PNG");
  // Usually all files can be created if one can; the last has the longest name.
  if (new_folder_.empty())
    require_writable("--output", of_picture(num_pictures - 1));
  else
    require_makeable(new_folder_);
}

void OutputFiles::make_folder() const {
  if (new_folder_.empty()) return;
  std::error_code failure;
  fs::create_directories(new_folder_, failure);
  check(!failure, "cannot make the folder ", new_folder_.string(), ": ", failure.message());
}

fs::path OutputFiles::of_picture(int number) const {
  if (num_pictures_ == 1) return folder_ / (stem_ + extension_);
  auto digits = std::to_string(number);
  const auto width = std::max(std::to_string(num_pictures_ - 1).size(), kFewestDigits);
  digits.insert(0, width - digits.size(), '0');
  return folder_ / (stem_ + "-" + digits + extension_);
}

void require_writable(const std::string& flag, const fs::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code unreachable;  // below a file, say: then it does not exist
  require(fs::exists(folder, unreachable), flag, " ", path.string(), ": there is no folder ",
          folder.string());
  require(fs::is_directory(folder, unreachable), flag, " ", path.string(), ": ", folder.string(),
          " is not a folder");
  require(!fs::is_directory(path, unreachable), flag, " ", path.string(),
          " should be a file, it is a folder");
  try {
    check_can_write(path);
  } catch (const Error& error) {
    throw InputError(flag + ": " + error.what());
  }
}

}  // namespace braid
