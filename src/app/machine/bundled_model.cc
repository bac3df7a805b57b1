#include "app/machine/bundled_model.h"

#include "base/error.h"
#include "base/file.h"

namespace braid {

namespace {

namespace fs = std::filesystem;

fs::path models_folder() {
  std::error_code unreadable;
  const auto program = fs::read_symlink("/proc/self/exe", unreadable);
  // Where no /proc says it, the path still begins at the root: the current folder may be anybody's.
  return "/" / program.parent_path().parent_path() / "share" / "braid" / "models";
}

}  // namespace

std::filesystem::path bundled_model_if_there() {
  const auto model = models_folder() / "demo";
  return is_there(model / "model_index.json") ? model : fs::path();
}

std::filesystem::path bundled_model() {
  const auto model = bundled_model_if_there();
  require(!model.empty(), "the model that comes with Braid is not in ", models_folder().string(),
          ": give another with --model PATH");
  return model;
}

fs::path published_models_if_there() {
  const auto published = models_folder() / "published";
  return is_folder(published) ? published : fs::path();
}

PipelineOptions with_bundled(PipelineOptions options) {
  if (const auto published = published_models_if_there(); !published.empty())
    options.published = published;
  if (options.model.empty() && options.comfy.empty()) options.model = bundled_model();
  return options;
}

}  // namespace braid
