// What is asked of a pipeline, and what it answers.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bind.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

void bind_pictures(nb::module_& m) {
  nb::enum_<ReferenceCache>(m, "ReferenceCache")
      .value("auto", ReferenceCache::kAuto)
      .value("off", ReferenceCache::kOff);
  nb::class_<Pixels>(m, "Pixels")
      .def(
          "__init__",
          [](Pixels* self, const BytesIn& pixels) { new (self) Pixels(pixels_of(pixels)); },
          nb::arg("pixels"))
      .def_ro("width", &Pixels::width)
      .def_ro("height", &Pixels::height);
  nb::class_<ControlPicture>(m, "ControlPicture")
      .def(nb::init<>())
      .def(
          "__init__",
          [](ControlPicture* self, const Pixels& picture) {
            new (self) ControlPicture{.picture = picture};
          },
          nb::arg("picture"))
      .def_rw("scale", &ControlPicture::scale)
      .def_rw("begin", &ControlPicture::from)
      .def_rw("end", &ControlPicture::to)
      .def_rw("mode", &ControlPicture::mode, nb::arg().none());
  nb::class_<PicturesIn>(m, "PicturesIn")
      .def(nb::init<>())
      .def_rw("init", &PicturesIn::init, nb::arg().none())
      .def_rw("strength", &PicturesIn::strength, nb::arg().none())
      .def_rw("mask", &PicturesIn::mask, nb::arg().none())
      .def_rw("mask_blur", &PicturesIn::mask_blur)
      .def_rw("padding_crop", &PicturesIn::padding_crop, nb::arg().none())
      .def_rw("references", &PicturesIn::references)
      .def_rw("reference_scales", &PicturesIn::reference_scales)
      .def_rw("reference_cache", &PicturesIn::reference_cache)
      .def_rw("resolution", &PicturesIn::resolution, nb::arg().none())
      .def_rw("controls", &PicturesIn::controls);
}

void bind_request(nb::module_& m) {
  nb::enum_<VaeTiling>(m, "VaeTiling")
      .value("auto", VaeTiling::kAuto)
      .value("on", VaeTiling::kOn)
      .value("off", VaeTiling::kOff);
  nb::enum_<Output>(m, "Output")
      .value("bytes", Output::kBytes)
      .value("values", Output::kValues)
      .value("latents", Output::kLatents);
  nb::class_<Request>(m, "Request")
      .def(nb::init<>())
      .def_rw("prompts", &Request::prompts)
      .def_rw("prompts_2", &Request::prompts_2)
      .def_rw("negative_prompt", &Request::negative_prompt, nb::arg().none())
      .def_rw("negative_prompt_2", &Request::negative_prompt_2, nb::arg().none())
      .def_rw("boxes", &Request::boxes)
      .def_rw("true_cfg", &Request::true_cfg)
      .def_rw("guidance_rescale", &Request::guidance_rescale)
      .def_rw("cfg_norm_cap", &Request::cfg_norm_cap)
      .def_rw("cfg_normalize", &Request::cfg_normalize, nb::arg().none())
      .def_rw("cfg_until", &Request::cfg_until)
      .def_rw("width", &Request::width, nb::arg().none())
      .def_rw("height", &Request::height, nb::arg().none())
      .def_rw("layers", &Request::layers, nb::arg().none())
      .def_rw("steps", &Request::steps, nb::arg().none())
      .def_prop_rw(
          "base_sigmas", [](const Request& self) { return self.sampling.base_sigmas; },
          [](Request& self, const std::vector<double>& sigmas) {
            self.sampling.base_sigmas = sigmas;
          })
      .def_rw("guidance", &Request::guidance, nb::arg().none())
      .def_rw("max_sequence_length", &Request::max_sequence_length, nb::arg().none())
      .def_rw("seed", &Request::seed)
      .def_rw("num_images", &Request::num_images)
      .def_rw("batch_size", &Request::batch_size)
      .def_rw("vae_tiling", &Request::vae_tiling)
      .def_rw("output", &Request::output)
      .def_rw("pictures", &Request::pictures)
      .def_rw("adapters", &Request::adapters, nb::arg().none())
      // Latents are those of all pictures: a request with them cannot be taken apart.
      .def("takes_seeds_apart", [](const Request& self) { return !self.latents; })
      .def("copy", [](const Request& self) { return self; })
      .def("set_latents",
           [](Request& self, const FloatsIn& latents) { self.latents = latents_of(latents); });
}

// "LayersDrawn(drawn=4, most=16, resolutions=[640, 1024])": all fields that are bound.
std::string repr_of(nb::handle self) {
  std::string fields;
  for (const nb::handle key : self.type().attr("__dict__")) {
    const auto name = nb::cast<std::string>(key);
    if (name.starts_with("_")) continue;
    const nb::object value = self.attr(name.c_str());
    fields += (fields.empty() ? "" : ", ") + name + "=" + nb::repr(value).c_str();
  }
  return nb::cast<std::string>(self.type().attr("__name__")) + "(" + fields + ")";
}

void bind_answers(nb::module_& m) {
  nb::enum_<GuidanceKind>(m, "GuidanceKind")
      .value("none", GuidanceKind::kNone)
      .value("embedded", GuidanceKind::kEmbedded)
      .value("embedded_or_true", GuidanceKind::kEmbeddedOrTrue)
      .value("true", GuidanceKind::kTrue);
  nb::class_<ModelInfo::Pictures>(m, "PicturesTaken")
      .def_ro("takes_init", &ModelInfo::Pictures::takes_init)
      .def_ro("takes_mask", &ModelInfo::Pictures::takes_mask)
      .def_ro("needs_mask", &ModelInfo::Pictures::needs_mask)
      .def_ro("takes_control", &ModelInfo::Pictures::takes_control)
      .def_ro("net_fills_in", &ModelInfo::Pictures::net_fills_in)
      .def_ro("most_references", &ModelInfo::Pictures::most_references)
      .def_ro("strength", &ModelInfo::Pictures::strength)
      .def_ro("strength_with_mask", &ModelInfo::Pictures::strength_with_mask)
      .def("__repr__", &repr_of);
  nb::class_<ModelInfo::Layers>(m, "LayersDrawn")
      .def_ro("drawn", &ModelInfo::Layers::drawn)
      .def_ro("most", &ModelInfo::Layers::most)
      .def_ro("resolutions", &ModelInfo::Layers::resolutions)
      .def("__repr__", &repr_of);
  nb::class_<ModelInfo>(m, "ModelInfo")
      .def_ro("family", &ModelInfo::family)
      .def_ro("width", &ModelInfo::width)
      .def_ro("height", &ModelInfo::height)
      .def_ro("steps", &ModelInfo::steps)
      .def_ro("guidance", &ModelInfo::guidance)
      .def_ro("max_sequence_length", &ModelInfo::max_sequence_length)
      .def_ro("size_multiple", &ModelInfo::size_multiple)
      .def_ro("largest_side", &ModelInfo::largest_side)
      .def_ro("max_text_tokens", &ModelInfo::max_text_tokens)
      .def_ro("layers", &ModelInfo::layers)
      .def_ro("draws_alpha", &ModelInfo::draws_alpha)
      .def_ro("num_texts", &ModelInfo::num_texts)
      .def_ro("guidance_kind", &ModelInfo::guidance_kind)
      .def_ro("pictures", &ModelInfo::pictures)
      .def("__repr__", &repr_of);
  nb::class_<Picture>(m, "Picture")
      .def_ro("width", &Picture::width)
      .def_ro("height", &Picture::height)
      .def_ro("prompt", &Picture::prompt)
      .def_ro("seed", &Picture::seed)
      .def_prop_ro(
          "pixels", [](const Picture& p) { return array_of(p); }, nb::rv_policy::automatic)
      .def_prop_ro(
          "values", [](const Picture& p) { return array_of(p.values); }, nb::rv_policy::automatic);
}

void bind_reports(nb::module_& m) {
  nb::enum_<Phase>(m, "Phase")
      .value("load", Phase::kLoad)
      .value("text", Phase::kText)
      .value("denoise", Phase::kDenoise)
      .value("decode", Phase::kDecode);
  nb::class_<Progress>(m, "Progress")
      .def_ro("phase", &Progress::phase)
      .def_ro("done", &Progress::done)
      .def_ro("total", &Progress::total)
      .def_rw("first_picture", &Progress::first_picture)
      .def_ro("num_pictures", &Progress::num_pictures);
  nb::class_<Preview>(m, "Preview")
      .def_rw("picture", &Preview::picture)
      .def_ro("step", &Preview::step)
      .def_prop_ro(
          "rgb", [](const Preview& p) { return array_of(p.rgb, p.width, p.height); },
          nb::rv_policy::automatic);
  nb::class_<StepEnd>(m, "StepEnd")
      .def_ro("step", &StepEnd::step)
      .def_ro("timestep", &StepEnd::timestep)
      .def_ro("first_picture", &StepEnd::first_picture)
      .def_prop_rw(
          "latents", [](const StepEnd& end) { return array_of(end.latents); },
          [](StepEnd& end, const FloatsIn& latents) { end.latents = latents_of(latents); },
          nb::rv_policy::automatic);
}

}  // namespace

void bind_requests(nb::module_& m) {
  bind_pictures(m);
  bind_request(m);
  bind_answers(m);
  bind_reports(m);
}

}  // namespace braid::python
