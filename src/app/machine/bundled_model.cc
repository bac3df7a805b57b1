#include "app/machine/bundled_model.h"

#include "base/error.h"
#include "base/file.h"

namespace braid {

namespace {

namespace fs = std::filesystem;

// Empty where no /proc says where the program is: a path that begins with nothing would be one in
// the current folder.
fs::path models_folder() {
  std::error_code unreadable;
  const auto program = fs::read_symlink("/proc/self/exe", unreadable);
  if (unreadable) return {};
  return program.parent_path().parent_path() / "share" / "braid" / "models";
}

}  // namespace

std::filesystem::path bundled_model_if_there() {
  const auto models = models_folder();
  const bool is_here = !models.empty() && is_there(models / "demo" / "model_index.json");
  return is_here ? models / "demo" : fs::path();
}

std::filesystem::path bundled_model() {
  const auto model = bundled_model_if_there();
  const auto models = models_folder();
  require(!models.empty(), "the model that comes with Braid cannot be found without /proc, which ",
          "says where the program is: give another with --model PATH");
  require(!model.empty(), "the model that comes with Braid is not in ", models.string(),
          ": give another with --model PATH");
  return model;
}

fs::path published_models_if_there() {
  const auto models = models_folder();
  const bool is_here = !models.empty() && is_folder(models / "published");
  return is_here ? models / "published" : fs::path();
}

PipelineOptions with_bundled(PipelineOptions options) {
  if (const auto published = published_models_if_there(); !published.empty())
    options.published = published;
  if (options.model.empty() && options.comfy.empty()) options.model = bundled_model();
  return options;
}

}  // namespace braid
