// The models of `braid serve`: what the config files say of each, and those that are loaded.
#pragma once

#include <mutex>

#include "app/flags/flags.h"
#include "pipeline/engine/engine.h"
#include "serve/backend.h"
#include "serve/loaded_models.h"

namespace braid {

// A model with what the command line leaves open filled in for this machine, for requests without
// a size.
struct ServedModel {
  std::string name;                       // for clients
  std::vector<std::string> names = {};    // further ones, listed
  std::vector<std::string> aliases = {};  // further ones, not listed
  Deployment deployment;
  VaeTiling tiling = VaeTiling::kAuto;     // asked for by the command line
  serve::MemoryNeed need = {};             // forecast; known if there is a budget
  std::vector<std::string> warnings = {};  // for the operator
};

// Returns the models in the order of the flags, at least one. Throws InputError.
std::vector<ServedModel> served_models(const ServeFlags& flags);

// One thread at a time may use it, except for models().
class ServedEngines {
 public:
  ServedEngines(std::vector<ServedModel> models, serve::MemoryNeed budget);

  const std::vector<ServedModel>& models() const { return models_; }
  // Loads the model unless it is loaded, replacing others if memory requires it.
  const Engine& use(std::size_t model, const Hooks& hooks);
  void release_all();  // until their next use
  // What pictures of the model are drawn with: a launch's ranks settle their shares when they load
  // it. Any thread may ask.
  PipelineOptions options(std::size_t model) const;

 private:
  std::vector<ServedModel> models_;
  serve::LoadedModels loaded_;
  std::vector<std::unique_ptr<const Engine>> engines_;
  mutable std::mutex mutex_;
  std::vector<PipelineOptions> options_;
};

// One per model; they share the engines. `lora_folder` may be empty.
std::vector<serve::Backend> backends_of(const std::shared_ptr<ServedEngines>& engines,
                                        const std::filesystem::path& lora_folder);

}  // namespace braid
