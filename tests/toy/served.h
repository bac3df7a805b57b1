// A model as `braid serve` has it.
#pragma once

#include "app/commands/served_models.h"

namespace braid::toy {

inline serve::Backend served(const PipelineOptions& options) {
  ServeFlags flags;
  flags.options = options;
  flags.models = {options.model};
  const auto engines = std::make_shared<ServedEngines>(served_models(flags), serve::MemoryNeed());
  return backends_of(engines, {}).at(0);
}

// What it hands over of a request.
inline std::vector<Picture> drawn_by(const serve::Backend& backend, const Request& request) {
  std::vector<Picture> pictures;
  backend.generate(backend.complete(request, {}),
                   {.picture = [&](const Picture& picture) { pictures.push_back(picture); }});
  return pictures;
}

}  // namespace braid::toy
