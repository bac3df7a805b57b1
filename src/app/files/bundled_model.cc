#include "app/files/bundled_model.h"

#include "base/error.h"

namespace braid {

std::filesystem::path bundled_model() {
  namespace fs = std::filesystem;
  std::error_code unreadable;  // no /proc: then the path is wrong, and the sentence below is right
  const auto program = fs::read_symlink("/proc/self/exe", unreadable);
  const auto prefix = program.parent_path().parent_path();
  const auto model = prefix / "share" / "braid" / "models" / "demo";
  require(fs::exists(model / "model_index.json"), "the model that comes with Braid is not at ",
          model.string(), ": give another with --model PATH");
  return model;
}

}  // namespace braid
