// Which files of a repository Braid reads: a download brings no others.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace braid {

struct RepositoryFiles {
  std::string name;                                          // "org/name", for errors
  std::vector<std::string> paths;                            // all files, with '/' between folders
  std::function<std::string(const std::string& path)> text;  // of a small file: an index
};

// A model directory needs its index, and of the folders of its family configurations, tokenizers
// and one form of the weights. One part, such as a ControlNet, needs the same of its folder; so
// does a denoiser that a trainer saved in its folder, without other parts. Else it is the only file
// of weights. The configuration beside a single file comes along: it has a LoRA's alpha, or a
// ControlNet's shape. `inside` names a file, or a folder to be taken likewise; empty: the whole
// repository. Throws InputError if Braid does not run such a model, or if several files could be
// meant.
std::vector<std::string> needed_files(const RepositoryFiles& repository, const std::string& inside);

}  // namespace braid
