// An input picture, as recorded in the file of the picture made from it.
#pragma once

#include <string>

namespace braid {

struct InputFile {
  std::string role;          // "init", "mask", "reference", "control", "latents"
  std::string name, sha256;  // of the file, without folders; of its contents
};

}  // namespace braid
