// A part of a model, loaded, used and released on a thread of its own.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "braid/braid.h"
#include "worker.h"

namespace braid::python {

template <class Part>
class OnThread {
 public:
  OnThread(const PipelineOptions& options, const nanobind::object& warning) {
    Caller caller;
    const auto warn = [&](const std::string& sentence) { caller.call([&] { warning(sentence); }); };
    const Hooks hooks{.warning = warn, .stop = caller.token()};
    worker_.run(caller, [&] { part_ = std::make_unique<const Part>(options, hooks); });
  }
  ~OnThread() {
    Caller caller;
    const auto drop = [&] { part_.reset(); };
    try {
      worker_.run(caller, drop);
    } catch (...) {  // Ctrl-C meanwhile: the work is done all the same
    }
  }
  OnThread(const OnThread&) = delete;
  OnThread& operator=(const OnThread&) = delete;

  // What `use` makes of the part, under hooks that Ctrl-C stops.
  template <class Use>
  Latents of(const Use& use) {
    Caller caller;
    Latents made;
    worker_.run(caller, [&] { made = use(*part_, Hooks{.stop = caller.token()}); });
    return made;
  }

 private:
  Worker worker_;
  std::unique_ptr<const Part> part_;
};

}  // namespace braid::python
