// For a budget that can only be met with weights in files, if no folder was given.
#pragma once

#include <memory>

#include "pipeline/memory/temporary_pages.h"
#include "pipeline/planner/fit.h"

namespace braid {

struct FittedInFiles {
  Fitted fitted;
  std::shared_ptr<const TemporaryPages> pages = {};  // set if the folder was not given
};

bool files_would_help(const DoesNotFit& refusal);

// The choice of fitted(), with files in a temporary folder if only that makes it fit. Throws
// DoesNotFit, or InputError if the disk has no room for them.
FittedInFiles fitted_in_files(PipelineOptions options, const Request& request);

// "; the files are in /var/tmp/braid-pages-x1y2z3 until the end", or nothing.
std::string sentence_of(const FittedInFiles& fit);

}  // namespace braid
