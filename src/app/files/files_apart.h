// Keeps what a run of generate writes apart from what it reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/flags/flags.h"

namespace braid {

struct NamedFile {
  std::string flag;  // "--mask"
  std::filesystem::path path;
};

// The files and folders that a run reads. `options` are those of its deployment, which name all
// files of the model.
std::vector<NamedFile> files_read(const GenerateFlags& flags, const PipelineOptions& options);

// Throws InputError if two of the files to be written are one file, by any of its names, or if one
// of them is read, also as a file in one of the folders. Pictures are no files of a model's folder.
// Only the picture that --init starts from may be replaced, by --output.
void require_apart(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);

}  // namespace braid
