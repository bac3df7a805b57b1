#include "app/files/output_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "app/print/standard_output.h"
#include "base/ascii.h"
#include "base/error.h"
#include "base/file.h"
#include "base/folder_entries.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr const char* kImpliedStem = "braid";

using Format = FileForm::Format;

std::optional<Format> format_of(const std::string& extension) {
  const auto name = ascii_lower_case(extension);
  if (name == ".png") return Format::kPng;
  if (name == ".jpg" || name == ".jpeg" || name == ".jpe" || name == ".jfif") return Format::kJpeg;
  if (name == ".webp") return Format::kWebp;
  return {};
}

const char* extension_of(Format format) {
  return format == Format::kJpeg ? ".jpg" : format == Format::kWebp ? ".webp" : ".png";
}

// Whether an extension names a format: ".mp4", ".tiff", ".pgn". Other names have points, too:
// "v1.5", "x.v2", "picture.final".
bool is_format(const std::string& extension) {
  const auto name = ascii_lower_case(extension);
  if (name == ".safetensors") return true;
  constexpr std::size_t kShortest = 3, kLongest = 5;  // with the point
  if (name.size() < kShortest || name.size() > kLongest || !is_ascii_letter(name[1])) return false;
  const bool is_version =
      name[1] == 'v' && std::all_of(name.begin() + 2, name.end(), is_ascii_digit);
  return !is_version && std::all_of(name.begin() + 1, name.end(), is_ascii_alphanumeric);
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

// Something, maybe a link that leads nowhere, has this name.
bool is_taken(const fs::path& path) {
  std::error_code missing;
  return fs::symlink_status(path, missing).type() != fs::file_type::not_found && !missing;
}

// NNN of "STEM-NNN.png"; -1 for other names.
int number_in(const std::string& name, const std::string& stem, const std::string& extension) {
  if (name.size() <= stem.size() + 1 + extension.size() || !name.starts_with(stem + "-") ||
      !name.ends_with(extension))
    return -1;
  const auto* const begin = name.data() + stem.size() + 1;
  const auto* const end = name.data() + name.size() - extension.size();
  constexpr int kMost = 1'000'000'000;
  int number = 0;
  const auto [stop, failure] = std::from_chars(begin, end, number);
  const bool is_number = failure == std::errc() && stop == end && *begin != '-';
  return is_number && number < kMost ? number : -1;
}

// Whether a path is a name of the file behind a descriptor. Nothing is lost in /dev/null.
bool leads_to(int descriptor, const fs::path& path) {
  struct stat named {
  }, opened{};
  const bool is_same = ::stat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
                       named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
  return is_same && (!S_ISCHR(opened.st_mode) || ::isatty(descriptor));
}

// Messages would stand between the bytes of what is written, or over them.
void require_apart_from_messages(const std::string& flag, const fs::path& path) {
  require(path == "-" || !leads_to(STDERR_FILENO, path), flag, " ", path.string(),
          " is no file of its own: standard error, which is for messages, goes there");
}

void check_standard_output(const OutputFlags& flags, int num_pictures) {
  require(num_pictures == 1, "--output - is one picture, there would be ", num_pictures,
          ": give a folder");
  require(!flags.overwrite, "--overwrite has no meaning with --output -, which is standard output");
  require(
      !::isatty(STDOUT_FILENO),
      "--output - writes the picture to standard output, which is a terminal: send it to a file "
      "or another program, as in braid generate PROMPT -o - > picture.png");
  require_apart_from_messages("--output", flags.path);
}

}  // namespace

OutputFiles::OutputFiles(const OutputFlags& flags, int num_pictures, std::size_t fewest_digits)
    : num_pictures_(num_pictures), fewest_digits_(fewest_digits) {
  const auto& output = flags.path;
  is_standard_output_ = leads_to_standard_output(output);
  std::error_code missing;
  is_folder_ = output.empty() || (!is_standard_output_ &&
                                  (!output.has_filename() || fs::is_directory(output, missing)));
  folder_ = is_folder_ ? output : output.parent_path();
  if (is_folder_ && !output.empty() && !fs::exists(output, missing))
    new_folder_ = output.parent_path();
  stem_ = is_folder_ ? kImpliedStem : output.stem().string();
  extension_ = is_folder_ ? "" : output.extension().string();
  choose_form(flags);
  if (is_standard_output_) {
    check_standard_output(flags, num_pictures);
    return;
  }
  choose_overwrite(flags);
  check_writable();
}

void OutputFiles::choose_form(const OutputFlags& flags) {
  const auto told = format_of(extension_);
  require(told || flags.format || !is_format(extension_),
          "--output should end in .png, .jpg or .webp, it is ", flags.path.string(),
          ": another ending needs --format, which says what to write");
  require(!told || !flags.format || told == flags.format, "--format ",
          flags.format ? format_name(*flags.format) : "", " and --output ", flags.path.string(),
          " contradict each other");
  form_.format = flags.format.value_or(told.value_or(Format::kPng));
  if (is_folder_) extension_ = extension_of(form_.format);
  if (!flags.quality) return;
  require(form_.format != Format::kPng,
          "--quality is for JPEG and WebP: give --format jpeg or webp, too");
  form_.quality = *flags.quality;
}

// A file that was named is what to write; in a folder old pictures are kept.
void OutputFiles::choose_overwrite(const OutputFlags& flags) {
  overwrite_ = flags.overwrite.value_or(is_folder_ ? Overwrite::kNumber : Overwrite::kAlways);
  if (overwrite_ == Overwrite::kNumber) first_ = first_free_number();
  if (overwrite_ != Overwrite::kNever) return;
  for (int k = 0; k < num_pictures_; ++k)
    require(!is_taken(of_picture(k)), "--overwrite never: ", of_picture(k).string(),
            " exists already; always replaces it, number gives the new picture another name");
}

// Usually all files can be created if one can; the last has the longest name. Old ones may be
// read-only.
void OutputFiles::check_writable() const {
  if (!new_folder_.empty()) return require_makeable(new_folder_);
  for (int k = 0; k < num_pictures_; ++k)
    if (k == num_pictures_ - 1 || is_taken(of_picture(k)))
      require_writable("--output", of_picture(k));
}

// The number is a guess if the folder cannot be read, and write() corrects it.
int OutputFiles::first_free_number() const {
  if (num_pictures_ == 1 && !is_taken(folder_ / (stem_ + extension_))) return 0;
  int last = num_pictures_ == 1 ? 0 : -1;
  std::error_code unreadable;
  const auto folder = folder_.empty() ? fs::path(".") : folder_;
  for (const auto& entry : entries_in(folder, unreadable))
    last = std::max(last, number_in(entry.path().filename().string(), stem_, extension_));
  return last + 1;
}

void OutputFiles::make_folder() const {
  if (new_folder_.empty()) return;
  std::error_code failure;
  fs::create_directories(new_folder_, failure);
  check(!failure, "cannot make the folder ", new_folder_.string(), ": ", failure.message());
}

fs::path OutputFiles::of_picture(int number) const {
  if (is_standard_output_) return "-";
  if (num_pictures_ == 1 && first_ == 0) return folder_ / (stem_ + extension_);
  auto digits = std::to_string(first_ + number);
  const auto width = std::max(std::to_string(first_ + num_pictures_ - 1).size(), fewest_digits_);
  digits.insert(0, width - digits.size(), '0');
  return folder_ / (stem_ + "-" + digits + extension_);
}

fs::path OutputFiles::write(int number, std::string_view bytes) {
  make_folder();
  if (is_standard_output_) {
    print(bytes);
    return "-";
  }
  if (overwrite_ == Overwrite::kAlways) {
    write_file(of_picture(number), bytes);
    return of_picture(number);
  }
  // Another program may have made the file since.
  while (!write_new_file(of_picture(number), bytes)) {
    check(overwrite_ == Overwrite::kNumber, "cannot write ", of_picture(number),
          ": it exists since a moment ago, and --overwrite is never");
    first_ = std::max(first_free_number() - number, first_ + 1);
  }
  return of_picture(number);
}

bool leads_to_standard_output(const fs::path& path) {
  return path == "-" || leads_to(STDOUT_FILENO, path);
}

bool is_picture_name(const fs::path& path) { return format_of(path.extension()).has_value(); }

void require_writable(const std::string& flag, const fs::path& path) {
  require(!leads_to_standard_output(path), flag, " ", path.string(),
          " is no file: standard output is for what is printed",
          path == "-" ? "; a file of this name is ./-" : "");
  require_apart_from_messages(flag, path);
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
