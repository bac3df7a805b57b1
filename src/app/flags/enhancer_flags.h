// The flags of prompt enhancement, of `braid generate` and `braid serve`.
#pragma once

#include <filesystem>
#include <string>

namespace braid {

struct EnhancerFlags {
  std::string url;               // empty: prompts are drawn as they are
  std::string model;             // empty: the first that the server lists
  std::filesystem::path system;  // empty: of the model's folder, or Braid's own
  std::filesystem::path key_file;
  double deadline = 300;  // seconds
};

}  // namespace braid
