// The models of `braid serve`: what is known of each from its config files, and those of them that
// are loaded.
#pragma once

#include "app/files/temporary_pages.h"
#include "app/flags/flags.h"
#include "pipeline/engine.h"
#include "serve/backend.h"
#include "serve/residency.h"

namespace braid {

// A model with what the command line leaves to this machine, for requests of its default size.
struct ServedModel {
  std::string name;
  PipelineOptions options;
  VaeTiling tiling = VaeTiling::kAuto;
  serve::MemoryNeed need = {};                       // forecast; known where there is a budget
  std::shared_ptr<const TemporaryPages> pages = {};  // of weights that do not fit it
};

// In the order of the flags, at least one. Throws InputError.
std::vector<ServedModel> served_models(const ServeFlags& flags);

// Used by one thread at a time, but for what is told of models.
class ServedEngines {
 public:
  ServedEngines(std::vector<ServedModel> models, serve::MemoryNeed budget);

  const std::vector<ServedModel>& models() const { return models_; }
  // Loads it where it is not there, in the place of others where memory asks for that.
  const Engine& use(std::size_t model, const Hooks& hooks);

 private:
  std::vector<ServedModel> models_;
  serve::Residency residency_;
  std::vector<std::unique_ptr<const Engine>> engines_;
};

// One for each model; they share the engines. `lora_folder` may be empty.
std::vector<serve::Backend> backends_of(const std::shared_ptr<ServedEngines>& engines,
                                        const std::filesystem::path& lora_folder);

}  // namespace braid
