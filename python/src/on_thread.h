// A part of a model, loaded, used and released on a thread of its own.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>

#include "braid/braid.h"
#include "sentence.h"
#include "worker.h"

namespace braid::python {

template <class Part>
class OnThread {
 public:
  OnThread(const PipelineOptions& options, const nanobind::object& warning) {
    Caller caller;
    const Hooks hooks{.warning =
                          [this](const std::string& sentence) {
                            if (warn_) warn_(sentence);
                          },
                      .stop = caller.token()};
    worker_->run(caller, [&] {
      warn_ = [&](const std::string& sentence) {
        caller.call([&] { warning(string_of(sentence)); });
      };
      part_ = std::make_unique<const Part>(options, hooks);
      warn_ = {};
    });
  }
  ~OnThread() { destroy_on(worker_, part_); }
  OnThread(const OnThread&) = delete;
  OnThread& operator=(const OnThread&) = delete;

  // What `use` makes of the part, under hooks that Ctrl-C stops.
  template <class Use>
  Latents of(const Use& use) {
    Caller caller;
    Latents made;
    worker_->run(caller, [&] { made = use(*part_, Hooks{.stop = caller.token()}); });
    return made;
  }

 private:
  std::unique_ptr<Worker> worker_ = std::make_unique<Worker>();
  std::function<void(const std::string&)> warn_;  // while it loads; the part keeps the hook
  std::unique_ptr<const Part> part_;
};

}  // namespace braid::python
