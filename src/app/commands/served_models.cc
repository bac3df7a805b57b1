#include "app/commands/served_models.h"

#include <mutex>
#include <set>

#include "app/commands/deployments.h"
#include "app/commands/plan_here.h"
#include "app/commands/serve_ranks.h"
#include "app/files/lora_folder.h"
#include "app/files/picture_text.h"
#include "app/machine/launched.h"
#include "app/print/failure.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "base/hub_cache.h"
#include "comm/fate.h"
#include "pipeline/families/description.h"
#include "pipeline/planner/planner.h"

namespace braid {
namespace {

using serve::Backend;

// Planned for requests without a size.
ServedModel settled(const ServeFlags& flags, const std::filesystem::path& model) {
  std::vector<std::string> warnings;
  auto deployment = deployed(
      flags, model, [&](const std::string& sentence) { warnings.push_back(with_flags(sentence)); });
  const int least = info_of(deployment.family->description()).size_multiple;
  require(flags.bounds.max_pixels >= least * least, "--max-pixels should be at least ",
          least * least, ": the smallest picture of this model has ", least, "x", least,
          " pixels, it is ", flags.bounds.max_pixels);
  ServedModel settled{.name = model_name(deployment.options.model),
                      .deployment = std::move(deployment),
                      .tiling = flags.vae_tiling,
                      .warnings = std::move(warnings)};
  if (const auto& plan = settled.deployment.memory_plan)
    settled.need = {.device = plan->device_peak, .host = plan->host_peak};
  // There are as many pictures as data parallel ranks, or these would have nothing to do.
  const auto slower = slower_split_here(
      settled.deployment, {.prompts = {""}, .num_images = settled.deployment.degrees().dp});
  if (slower) settled.warnings.push_back(*slower);
  return settled;
}

// Whatever goes wrong with the server's files is no client's fault.
template <class Work>
auto loaded_by(const Work& load) {
  try {
    return load();
  } catch (const Cancelled&) {
    throw;
  } catch (const WorldLost&) {
    throw;
  } catch (...) {
    throw serve::LoadFailed(current_failure().sentence);
  }
}

// Rethrows for clients what is being handled: engines also throw LibTorch's exceptions, clients get
// one sentence.
[[noreturn]] void throw_for_clients() {
  try {
    throw;
  } catch (const Cancelled&) {
    throw;
  } catch (const InputError&) {
    throw;
  } catch (const serve::LoadFailed&) {
    throw;
  } catch (const WorldLost& loss) {
    throw serve::BackendLost(loss.what());
  } catch (...) {
    throw Error(current_failure().sentence);
  }
}

std::optional<std::string> loss_of(const Engine* engine) {
  return engine ? engine->loss() : std::nullopt;
}

// A lost rank ends a run as any of its failures, and all later ones: whether it is lost, the
// exception does not say.
void draw(ServedEngines& engines, std::size_t model, const Request& request, const Hooks& hooks) {
  const Engine* engine = nullptr;
  try {
    engine = loaded_by([&] { return &engines.use(model, hooks); });
    if (is_launched()) announce_request(*engine, request);
    engine->generate(request, hooks);
  } catch (...) {
    if (const auto loss = loss_of(engine)) throw serve::BackendLost(*loss);
    throw_for_clients();
  }
}

void announce(ServedEngines& engines, void (*what)(const Engine&)) {
  if (!is_launched()) return;
  const Engine* engine = nullptr;
  try {
    engine = &engines.use(0, {});
    what(*engine);
  } catch (...) {
    const auto loss = loss_of(engine);
    throw serve::BackendLost(loss ? *loss : current_failure().sentence);
  }
}

// If the request brings its own adapters, the picture's file names those.
PngText text_in_file(const Picture& picture, const Settings& settings, const Request& request,
                     PipelineOptions options, const std::vector<InputFile>& files) {
  if (request.adapters) options.adapters = *request.adapters;
  return text_of_picture(picture, settings.prompt_of(0), settings, options, files);
}

std::vector<Backend::ControlNet> controlnets_of(const PipelineOptions& options,
                                                const std::vector<int>& modes) {
  std::vector<Backend::ControlNet> nets;
  for (std::size_t i = 0; i < options.controlnets.size(); ++i)
    nets.push_back({.name = model_name(options.controlnets[i]), .num_modes = modes[i]});
  return nets;
}

// Reads the tokenizers when they are first asked for: apart from the engine, which may be busy or
// not loaded.
std::function<std::vector<Backend::TokenCount>(const std::string&, const std::string&, int)>
token_counter(const ServedModel& model) {
  auto readers = model.deployment.family->prompt_readers();
  if (readers.empty()) return {};
  struct Lazy {
    std::once_flag once;
    std::optional<PromptCounter> counter;
  };
  return [lazy = std::make_shared<Lazy>(), readers = std::move(readers),
          folder = model.deployment.files->folder](
             const std::string& prompt, const std::string& second, int max_sequence_length) {
    std::call_once(lazy->once, [&] {
      lazy->counter.emplace(loaded_by([&] { return PromptCounter(readers, folder); }));
    });
    std::vector<Backend::TokenCount> counts;
    for (auto& one : lazy->counter->count(prompt, second, max_sequence_length))
      counts.push_back({.encoder = std::move(one.encoder),
                        .tokens = one.tokens,
                        .limit = one.limit,
                        .cut = std::move(one.cut)});
    return counts;
  };
}

Backend backend_of(const std::shared_ptr<ServedEngines>& engines, std::size_t index) {
  const auto& model = engines->models()[index];
  const auto& options = model.deployment.options;
  const auto& family = model.deployment.family;
  const auto complete = [engines, index](Request request, const Hooks& hooks) {
    const auto& served = engines->models()[index];
    if (request.vae_tiling == VaeTiling::kAuto) request.vae_tiling = served.tiling;
    request = served.deployment.tiled(std::move(request));
    return completed(request, settle(served.deployment, request, hooks.warning));
  };
  const auto generate = [engines, index](const Request& request, const Hooks& hooks) {
    draw(*engines, index, request, hooks);
  };
  const auto text = [engines, index](const Picture& picture, const Request& request,
                                     const std::vector<InputFile>& files) {
    const auto settings = settle(engines->models()[index].deployment, request, {});
    return text_in_file(picture, settings, request, engines->options(index), files);
  };
  const bool starts_at_prompt = family->description().limits.guided_from == GuidedFrom::kPositive;
  std::function<void()> release;
  if (!is_launched()) release = [engines] { engines->release_all(); };
  return {.model = model.name,
          .names = model.names,
          .aliases = model.aliases,
          .info = info_of(family->description()),
          .complete = complete,
          .generate = generate,
          .text = text,
          .count_tokens = token_counter(model),
          .controlnets =
              controlnets_of(options, family->description().limits.pictures.controlnet_modes),
          .has_redux = !options.redux.empty(),
          .unguided = starts_at_prompt ? 0.0 : 1.0,
          .embeds_guidance = family->description().limits.embeds_guidance,
          .adapters = options.adapters,
          .release = std::move(release),
          .keep_alive = [engines] { announce(*engines, announce_nothing); },
          .leave = [engines] { announce(*engines, announce_end); }};
}

void check_models(const ServeFlags& flags) {
  if (flags.models.size() < 2) return;
  const auto& o = flags.options;
  require(!is_launched(), "ranks that are processes cannot serve several models");
  require(o.components.empty() && o.text_encoder_files.empty() && o.vae_file.empty() &&
              o.adapters.empty() && o.controlnets.empty() && o.redux.empty(),
          "each of several models should be a directory: --components, --text-encoder-file, ",
          "--vae-file, --lora, --controlnet and --redux take a single model");
  std::set<std::string> names;
  for (const auto& model : flags.models)
    require(!flags.names.empty() || names.insert(model_name(model)).second,
            "each model should have a name of its own, two are called ", model_name(model),
            ": --served-model-name gives others");
  require(flags.names.empty() || flags.names.size() == flags.models.size(),
          "of several models each takes one --served-model-name: there are ", flags.names.size(),
          " for ", flags.models.size());
}

// What clients call the model: as they are told, or as its folder.
void give_names(const ServeFlags& flags, std::size_t index, ServedModel& model) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < flags.names.size(); ++i)
    if (flags.models.size() < 2 || i == index)
      names.insert(names.end(), flags.names[i].begin(), flags.names[i].end());
  model.aliases = {model.name};
  const auto repository = hub_repository(model.deployment.options.model);
  if (!repository.empty()) model.aliases.push_back(repository);
  if (names.empty()) return;
  model.name = names.front();
  model.names.assign(names.begin() + 1, names.end());
}

// The listed ones: of aliases the first model's counts.
void require_distinct_names(const std::vector<ServedModel>& models) {
  std::set<std::string> seen;
  const auto add = [&](const std::string& name) {
    require(seen.insert(name).second, "each model should have a name of its own, two are called ",
            name, ": --served-model-name gives others");
  };
  for (const auto& model : models) {
    add(model.name);
    for (const auto& name : model.names) add(name);
  }
}

}  // namespace

std::vector<ServedModel> served_models(const ServeFlags& flags) {
  check_models(flags);
  std::vector<ServedModel> models;
  for (const auto& model : flags.models) models.push_back(settled(flags, model));
  if (models.empty()) models.push_back(settled(flags, {}));
  for (std::size_t i = 0; i < models.size(); ++i) give_names(flags, i, models[i]);
  require_distinct_names(models);
  return models;
}

ServedEngines::ServedEngines(std::vector<ServedModel> models, serve::MemoryNeed budget)
    : models_(std::move(models)),
      loaded_(
          [&] {
            std::vector<serve::MemoryNeed> needs;
            for (const auto& model : models_) needs.push_back(model.need);
            return needs;
          }(),
          budget),
      engines_(models_.size()) {
  for (const auto& model : models_) options_.push_back(model.deployment.options);
}

const Engine& ServedEngines::use(std::size_t model, const Hooks& hooks) {
  const auto others = loaded_.enter(model);
  for (const auto other : others) engines_[other].reset();
  if (!others.empty()) give_back_free_memory();
  auto& engine = engines_[model];
  if (engine) return *engine;
  try {
    engine = std::make_unique<const Engine>(models_[model].deployment, hooks);
  } catch (...) {
    loaded_.leave(model);
    give_back_free_memory();
    throw;
  }
  const std::scoped_lock lock(mutex_);
  options_[model] = engine->deployment().options;
  return *engine;
}

PipelineOptions ServedEngines::options(std::size_t model) const {
  const std::scoped_lock lock(mutex_);
  return options_[model];
}

void ServedEngines::release_all() {
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    loaded_.leave(i);
    engines_[i].reset();
  }
  give_back_free_memory();
}

std::vector<Backend> backends_of(const std::shared_ptr<ServedEngines>& engines,
                                 const std::filesystem::path& lora_folder) {
  std::vector<Backend> backends;
  for (std::size_t i = 0; i < engines->models().size(); ++i) {
    auto& backend = backends.emplace_back(backend_of(engines, i));
    if (!lora_folder.empty()) backend.loras = [=] { return loras_in(lora_folder); };
  }
  return backends;
}

}  // namespace braid
