// An autoencoder alone.
#include "arrays.h"
#include "bind.h"
#include "braid/picture_autoencoder.h"
#include "on_thread.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

using Autoencoder = OnThread<PictureAutoencoder>;

VaeTiling tiling_of(bool in_tiles) { return in_tiles ? VaeTiling::kOn : VaeTiling::kOff; }

}  // namespace

void bind_autoencoder(nb::module_& m) {
  nb::class_<Autoencoder>(m, "PictureAutoencoder")
      .def(nb::init<const PipelineOptions&, const nb::object&>(), nb::arg("options"),
           nb::arg("warning"))
      .def(
          "decode",
          [](Autoencoder& self, const FloatsIn& latents, bool in_tiles) {
            const auto given = latents_of(latents);
            return array_of(self.of([&](const PictureAutoencoder& autoencoder, const Hooks& hooks) {
              return autoencoder.decode(given, tiling_of(in_tiles), hooks);
            }));
          },
          nb::arg("latents"), nb::arg("in_tiles"))
      .def(
          "encode",
          [](Autoencoder& self, const FloatsIn& pictures, bool in_tiles) {
            const auto given = latents_of(pictures);
            return array_of(self.of([&](const PictureAutoencoder& autoencoder, const Hooks& hooks) {
              return autoencoder.encode(given, tiling_of(in_tiles), hooks);
            }));
          },
          nb::arg("pictures"), nb::arg("in_tiles"));
}

}  // namespace braid::python
