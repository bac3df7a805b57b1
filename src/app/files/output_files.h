// Chooses the file that each picture is written to.
#pragma once

#include <filesystem>
#include <string>

namespace braid {

class OutputFiles {
 public:
  // `output` is a file; with several pictures NAME-000.png, NAME-001.png, ... for NAME.png. Or it
  // is a folder, existing or with a name that ends in "/", for braid.png or braid-000.png, ...
  // Throws InputError unless the files can be created. Leaves nothing behind.
  OutputFiles(const std::filesystem::path& output, int num_pictures);

  // Creates the folder if the name ends in "/" and it is missing. Throws Error.
  void make_folder() const;
  std::filesystem::path of_picture(int number) const;  // from 0

 private:
  std::filesystem::path folder_, new_folder_;  // the latter is empty unless it has to be created
  std::string stem_, extension_;
  int num_pictures_;
};

// Throws InputError beginning with `flag` unless a file could be created at `path` now. Leaves
// nothing behind.
void require_writable(const std::string& flag, const std::filesystem::path& path);

}  // namespace braid
