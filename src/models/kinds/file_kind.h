// What a file of weights is, told by the names of its tensors: a LoRA, an autoencoder, a model of
// an architecture that Braid may not run.
#pragma once

#include "weights/files/checkpoint.h"

namespace braid {

enum class FileRole {
  kUnknown,
  kModel,  // a denoiser, or a checkpoint with all parts
  kTextEncoder,
  kAutoencoder,
  kAdapter,
  kControlNet,
  kRedux,
  kOther,  // of no use to Braid
};

struct FileKind {
  FileRole role = FileRole::kUnknown;
  std::string name = {};    // with its article: "a Stable Diffusion XL model"
  std::string family = {};  // as Description's, if it is a denoiser of a family that Braid runs
};

FileKind kind_of_file(const Checkpoint& checkpoint);

// A sentence for a file that was given for something else: what it is, and what to do. For a
// `wanted` model, that is also a model that Braid does not run.
std::string misuse_of_file(const std::string& path, const FileKind& kind, FileRole wanted);

// "an autoencoder"
std::string role_name(FileRole role);

}  // namespace braid
