// A picture that went into another one, as that one's file names it.
#pragma once

#include <string>

namespace braid {

struct InputFile {
  std::string role;          // "init", "mask", "reference", "control"
  std::string name, sha256;  // of the file, without its folders; of its contents
};

}  // namespace braid
