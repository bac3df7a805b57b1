// A transformer alone, with its work on a thread of its own.
#include <nanobind/stl/vector.h>

#include <memory>

#include "arrays.h"
#include "bind.h"
#include "braid/transformer.h"
#include "worker.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

class TransformerOnThread {
 public:
  TransformerOnThread(const PipelineOptions& options, const nb::object& warning) {
    Caller caller;
    const auto warn = [&](const std::string& sentence) { caller.call([&] { warning(sentence); }); };
    const Hooks hooks{.warning = warn, .stop = caller.token()};
    worker_.run(caller,
                [&] { transformer_ = std::make_unique<const Transformer>(options, hooks); });
  }
  ~TransformerOnThread() {
    Caller caller;
    const auto drop = [&] { transformer_.reset(); };
    try {
      worker_.run(caller, drop);
    } catch (...) {  // Ctrl-C meanwhile: the work is done all the same
    }
  }
  TransformerOnThread(const TransformerOnThread&) = delete;
  TransformerOnThread& operator=(const TransformerOnThread&) = delete;

  Floats velocity(const TransformerInput& evaluation) {
    Caller caller;
    Latents velocity;
    worker_.run(caller,
                [&] { velocity = transformer_->velocity(evaluation, {.stop = caller.token()}); });
    return array_of(velocity);
  }

 private:
  Worker worker_;
  std::unique_ptr<const Transformer> transformer_;
};

}  // namespace

void bind_transformer(nb::module_& m) {
  nb::class_<TransformerInput>(m, "TransformerInput")
      .def(
          "__init__",
          [](TransformerInput* self, const FloatsIn& latents, const FloatsIn& text) {
            new (self) TransformerInput{
                .latents = latents_of(latents), .text = latents_of(text), .timesteps = {}};
          },
          nb::arg("latents"), nb::arg("text"))
      .def("set_pooled",
           [](TransformerInput& e, const FloatsIn& pooled) { e.pooled = latents_of(pooled); })
      .def("set_ids",
           [](TransformerInput& e, const FloatsIn& latents, const FloatsIn& text) {
             e.latent_ids = latents_of(latents);
             e.text_ids = latents_of(text);
           })
      .def("add_double_residual",
           [](TransformerInput& e, const FloatsIn& residual) {
             e.double_residuals.push_back(latents_of(residual));
           })
      .def("add_single_residual",
           [](TransformerInput& e, const FloatsIn& residual) {
             e.single_residuals.push_back(latents_of(residual));
           })
      .def_rw("timesteps", &TransformerInput::timesteps)
      .def_rw("guidance", &TransformerInput::guidance)
      .def_rw("width", &TransformerInput::width)
      .def_rw("height", &TransformerInput::height)
      .def_rw("num_references", &TransformerInput::num_references);
  nb::class_<TransformerOnThread>(m, "Transformer")
      .def(nb::init<const PipelineOptions&, const nb::object&>(), nb::arg("options"),
           nb::arg("warning"))
      .def("velocity", &TransformerOnThread::velocity, nb::arg("evaluation"));
}

}  // namespace braid::python
