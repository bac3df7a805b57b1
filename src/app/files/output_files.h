// Which file each picture goes to.
#pragma once

#include <filesystem>
#include <string>

namespace braid {

class OutputFiles {
 public:
  // `output` is the file, or with several pictures NAME-000.png, NAME-001.png, ... for NAME.png; or
  // a folder, by being there or by a name that ends in "/", for braid.png or braid-000.png, ...
  // Throws InputError unless such files can be made. Leaves nothing behind.
  OutputFiles(const std::filesystem::path& output, int num_pictures);

  // Makes the folder where a name that ends in "/" is not there. Throws Error.
  void make_folder() const;
  std::filesystem::path of_picture(int number) const;  // from 0

 private:
  std::filesystem::path folder_, new_folder_;  // the latter empty unless it has to be made
  std::string stem_, extension_;
  int num_pictures_;
};

// Throws InputError beginning with `flag` unless a file could be made at `path` now. Leaves nothing
// behind.
void require_writable(const std::string& flag, const std::filesystem::path& path);

}  // namespace braid
