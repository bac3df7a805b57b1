// The flags of `braid pull` and `braid models`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace braid {

struct PullFlags {
  std::string name;  // "org/name", "org/name@revision", "org/name/file"
  int workers = 4;   // files at once
  bool verify = false, dry_run = false, json = false, quiet = false;
};

struct ModelsFlags {
  std::vector<std::filesystem::path> comfy;  // models folders of ComfyUI
  bool json = false;
};

}  // namespace braid
