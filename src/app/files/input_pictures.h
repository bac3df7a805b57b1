// The pictures that go into a picture.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/flags/flags.h"
#include "image/input_file.h"

namespace braid {

struct InputPictures {
  PicturesIn pictures;
  std::vector<InputFile> files;
};

// Reads what the flags name. Throws InputError for files that are no pictures.
InputPictures read_input_pictures(const PictureFlags& flags);

}  // namespace braid
