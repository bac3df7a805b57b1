// Names of tensors that mark an architecture, in the order in which they are looked for.
#pragma once

#include <vector>

#include "models/kinds/file_kind.h"

namespace braid {

// A file is of this kind if one of its tensors has one of the marks in its name, where a segment of
// the name begins. "^" stands for the beginning of a name, or what follows kOuterPrefixes there.
struct FileMarks {
  FileKind kind;
  std::vector<const char*> any;
  std::vector<const char*> with = {};  // and another one of these, if there are any
};

const std::vector<FileMarks>& file_marks();

}  // namespace braid
