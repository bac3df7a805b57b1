// The pipeline, with its work on a thread of its own.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bind.h"
#include "braid/braid.h"
#include "sentence.h"
#include "worker.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

struct Stop {
  std::stop_source source;
};

std::stop_source source_of(const Stop* stop) { return stop ? stop->source : std::stop_source(); }

// Calls `function`, unless it is None, with what the work reports. What is passed lives as long as
// the call.
template <class Report>
std::function<void(Report&)> told(Caller& caller, const nb::object& function) {
  if (function.is_none()) return {};
  return [&caller, &function](Report& report) {
    caller.call([&] { function(nb::cast(&report, nb::rv_policy::reference)); });
  };
}

// The same for reports that Python may keep.
template <class Report>
std::function<void(const Report&)> told_copy(Caller& caller, const nb::object& function) {
  if (function.is_none()) return {};
  return [&caller, &function](const Report& report) {
    caller.call([&] { function(nb::cast(report)); });
  };
}

std::function<void(const std::string&)> told_sentence(Caller& caller, const nb::object& function) {
  if (function.is_none()) return {};
  return [&caller, &function](const std::string& sentence) {
    caller.call([&] { function(string_of(sentence)); });
  };
}

class PipelineOnThread {
 public:
  PipelineOnThread(const PipelineOptions& options, const nb::object& progress,
                   const nb::object& warning, const Stop* stop) {
    Caller caller(source_of(stop));
    const Hooks hooks{.progress = told_copy<Progress>(caller, progress),
                      .warning = told_sentence(caller, warning),
                      .stop = caller.token()};
    worker_->run(caller, [&] { pipeline_ = std::make_unique<const Pipeline>(options, hooks); });
  }
  ~PipelineOnThread() { destroy_on(worker_, pipeline_); }
  PipelineOnThread(const PipelineOnThread&) = delete;
  PipelineOnThread& operator=(const PipelineOnThread&) = delete;

  std::vector<Picture> generate(const Request& request, const nb::object& progress,
                                const nb::object& step_end, const nb::object& preview,
                                const nb::object& warning, const Stop* stop) {
    Caller caller(source_of(stop));
    const Hooks hooks{.progress = told_copy<Progress>(caller, progress),
                      .preview = told_copy<Preview>(caller, preview),
                      .step_end = told<StepEnd>(caller, step_end),
                      .warning = told_sentence(caller, warning),
                      .stop = caller.token()};
    std::vector<Picture> pictures;
    worker_->run(caller, [&] { pictures = pipeline_->generate(request, hooks); });
    return pictures;
  }

  ModelInfo info() const { return pipeline_->info(); }

 private:
  std::unique_ptr<Worker> worker_ = std::make_unique<Worker>();
  std::unique_ptr<const Pipeline> pipeline_;
};

}  // namespace

void bind_pipeline(nb::module_& m) {
  nb::class_<Stop>(m, "Stop").def(nb::init<>()).def("request", [](Stop& self) {
    self.source.request_stop();
  });
  nb::class_<PipelineOnThread>(m, "Pipeline")
      .def(nb::init<const PipelineOptions&, const nb::object&, const nb::object&, const Stop*>(),
           nb::arg("options"), nb::arg("progress") = nb::none(), nb::arg("warning") = nb::none(),
           nb::arg("stop").none() = nb::none())
      .def("generate", &PipelineOnThread::generate, nb::arg("request"),
           nb::arg("progress") = nb::none(), nb::arg("step_end") = nb::none(),
           nb::arg("preview") = nb::none(), nb::arg("warning") = nb::none(),
           nb::arg("stop").none() = nb::none())
      .def("info", &PipelineOnThread::info);
  m.def("end_calls", &end_calls);
}

}  // namespace braid::python
