// Chooses the file that each picture is written to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "app/flags/flags.h"

namespace braid {

class OutputFiles {
 public:
  // `flags.path` is a file; with several pictures NAME-000.png, NAME-001.png, ... for NAME.png. Or
  // it is a folder, existing or with a name that ends in "/", for braid.png or braid-000.png, ...
  // Or it is standard output. The extension tells the format unless it is asked for; a name without
  // one is a PNG's. Throws InputError for other formats' extensions, unless the files can be
  // created, and for files that exist and may not be replaced. Leaves nothing behind. Numbers have
  // `fewest_digits` at least.
  OutputFiles(const OutputFlags& flags, int num_pictures, std::size_t fewest_digits = 3);

  const FileForm& form() const { return form_; }
  int num_pictures() const { return num_pictures_; }
  bool is_standard_output() const { return is_standard_output_; }
  // Counted from 0. Where files are numbered, a file that another program makes moves the numbers
  // on.
  std::filesystem::path of_picture(int number) const;

  // Creates the folder if the name ends in "/" and it is missing, writes the next picture's file
  // whole, and returns its path. Throws Error.
  std::filesystem::path write(int number, std::string_view bytes);

 private:
  void choose_form(const OutputFlags& flags);
  void choose_overwrite(const OutputFlags& flags);
  void check_writable() const;
  int first_free_number() const;
  void make_folder() const;

  std::filesystem::path folder_, new_folder_;  // the latter is empty unless it has to be created
  std::string stem_, extension_;
  FileForm form_;
  Overwrite overwrite_ = Overwrite::kAlways;
  bool is_folder_ = false, is_standard_output_ = false;
  int num_pictures_;
  std::size_t fewest_digits_;
  int first_ = 0;  // the number of the first picture's file
};

// Whether "-" or another name of the file that standard output goes to: /dev/stdout, or a file that
// the shell opened.
bool leads_to_standard_output(const std::filesystem::path& path);

// Whether its extension is one of the formats that Braid writes.
bool is_picture_name(const std::filesystem::path& path);

// Throws InputError beginning with `flag` unless a file could be created at `path` now. Leaves
// nothing behind.
void require_writable(const std::string& flag, const std::filesystem::path& path);

}  // namespace braid
