// Reads the pictures that a request starts from, looks at or follows.
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

// Reads the files that the flags name, as read_input() does, and so waits for pipes. Throws
// InputError for files that are not pictures.
InputPictures read_input_pictures(const PictureFlags& flags);

}  // namespace braid
