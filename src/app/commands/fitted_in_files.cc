#include "app/commands/fitted_in_files.h"

#include <algorithm>

#include "base/error.h"
#include "base/readable_bytes.h"

namespace braid {

namespace {

std::shared_ptr<const TemporaryPages> made_pages() {
  try {
    return std::make_shared<const TemporaryPages>();
  } catch (const Error& error) {  // a read-only root, say
    throw Error(text_of(error.what(), ", or give --offload-dir DIR"));
  }
}

}  // namespace

bool files_would_help(const DoesNotFit& refusal) {
  return std::ranges::any_of(refusal.help(), [](const DoesNotFit::Help& help) {
    return help.remedy == DoesNotFit::Remedy::kFiles;
  });
}

FittedInFiles fitted_in_files(PipelineOptions options, const Request& request) {
  try {
    return {.fitted = fitted(options, request)};
  } catch (const DoesNotFit& refusal) {
    if (!files_would_help(refusal)) throw;
  }
  auto pages = made_pages();
  options.memory.offload.folder = pages->folder();
  FittedInFiles chosen{.fitted = fitted(options, request), .pages = pages};
  const auto room = std::filesystem::space(pages->folder()).available;
  const auto files = chosen.fitted.fit.files;
  require(std::uint64_t(files) <= room, "the weights need files of ", readable_bytes(double(files)),
          ", but ", pages->folder().parent_path(), " has room for ", readable_bytes(double(room)),
          ": give another folder with --offload-dir");
  return chosen;
}

std::string sentence_of(const FittedInFiles& fit) {
  if (!fit.pages) return {};
  return text_of("; ", readable_bytes(double(fit.fitted.fit.files)), " of files are in ",
                 fit.pages->folder().string(), " until the run ends; --offload-dir DIR keeps them");
}

}  // namespace braid
