// A transformer alone.
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bind.h"
#include "braid/transformer.h"
#include "on_thread.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

using TransformerOnThread = OnThread<Transformer>;

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
      .def(
          "add_reference_place",
          [](TransformerInput& e, int num_tokens, int text_before) {
            e.reference_places.push_back({.num_tokens = num_tokens, .text_before = text_before});
          },
          nb::arg("num_tokens"), nb::arg("text_before"))
      .def_rw("timesteps", &TransformerInput::timesteps)
      .def_rw("target_timesteps", &TransformerInput::target_timesteps)
      .def_rw("guidance", &TransformerInput::guidance)
      .def_rw("width", &TransformerInput::width)
      .def_rw("height", &TransformerInput::height)
      .def_rw("num_references", &TransformerInput::num_references);
  nb::class_<TransformerOnThread>(m, "Transformer")
      .def(nb::init<const PipelineOptions&, const nb::object&>(), nb::arg("options"),
           nb::arg("warning"))
      .def(
          "velocity",
          [](TransformerOnThread& self, const TransformerInput& evaluation) {
            return array_of(self.of([&](const Transformer& transformer, const Hooks& hooks) {
              return transformer.velocity(evaluation, hooks);
            }));
          },
          nb::arg("evaluation"));
}

}  // namespace braid::python
