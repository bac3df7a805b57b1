// The pictures that go into a picture.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/flags/flags.h"

namespace braid {

struct InputFile {
  std::string role;          // "init", "mask", "reference", "control"
  std::string name, sha256;  // of the file, without its folders; of its contents
};

struct InputPictures {
  PicturesIn pictures;
  std::vector<InputFile> files;
};

// Reads what the flags name. Throws InputError for files that are no pictures.
InputPictures read_input_pictures(const PictureFlags& flags);

}  // namespace braid
