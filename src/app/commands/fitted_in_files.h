// A budget that weights meet only in files, where nobody said in which folder.
#pragma once

#include <memory>

#include "app/files/temporary_pages.h"
#include "pipeline/planner/fit.h"

namespace braid {

struct FittedInFiles {
  Fitted fitted;
  std::shared_ptr<const TemporaryPages> pages = {};  // where there are files of nobody's choice
};

bool files_would_help(const DoesNotFit& refusal);

// What fitted() chooses, with files in a temporary folder where that is what is missing. Throws
// DoesNotFit, or InputError where the disk has no room for them.
FittedInFiles fitted_in_files(PipelineOptions options, const Request& request);

// "; the files are in /var/tmp/braid-pages-x1y2z3 until the end", or nothing.
std::string sentence_of(const FittedInFiles& fit);

}  // namespace braid
