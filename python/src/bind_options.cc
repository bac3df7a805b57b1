// How a pipeline is loaded.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "braid/braid.h"

namespace nb = nanobind;

namespace braid::python {
namespace {

void bind_words(nb::module_& m) {
  nb::enum_<Dtype>(m, "Dtype")
      .value("auto", Dtype::kAuto)
      .value("float32", Dtype::kFloat32)
      .value("bfloat16", Dtype::kBfloat16)
      .value("float16", Dtype::kFloat16);
  nb::enum_<Fit>(m, "Fit").value("as_asked", Fit::kAsAsked).value("auto", Fit::kAuto);
  nb::enum_<Graphs>(m, "Graphs").value("auto", Graphs::kAuto).value("off", Graphs::kOff);
  nb::enum_<TextStream>(m, "TextStream")
      .value("shared", TextStream::kShared)
      .value("own", TextStream::kOwn);
  nb::enum_<AdapterMode>(m, "AdapterMode")
      .value("auto", AdapterMode::kAuto)
      .value("fused", AdapterMode::kFused)
      .value("unmerged", AdapterMode::kUnmerged);
}

void bind_layout(nb::module_& m) {
  nb::enum_<Ranks>(m, "Ranks")
      .value("threads", Ranks::kThreads)
      .value("processes", Ranks::kProcesses);
  nb::enum_<SharedModulation>(m, "SharedModulation")
      .value("sharded", SharedModulation::kYes)
      .value("replicated", SharedModulation::kNo);
  nb::enum_<TextRanks>(m, "TextRanks")
      .value("rank0", TextRanks::kFirst)
      .value("tp", TextRanks::kShared);
  nb::enum_<DecodeRanks>(m, "DecodeRanks")
      .value("rank0", DecodeRanks::kFirst)
      .value("ranks", DecodeRanks::kAll);
  nb::enum_<RingForm>(m, "RingForm")
      .value("shift", RingForm::kShift)
      .value("gather", RingForm::kGather);
  nb::enum_<Collectives>(m, "Collectives")
      .value("ordered", Collectives::kOrdered)
      .value("native", Collectives::kNative);
  nb::class_<AxisShares>(m, "AxisShares")
      .def(nb::init<>())
      .def_rw("dp", &AxisShares::dp)
      .def_rw("pp", &AxisShares::pp)
      .def_rw("ring", &AxisShares::ring)
      .def_rw("ulysses", &AxisShares::ulysses)
      .def_rw("tp", &AxisShares::tp);
  nb::class_<Layout>(m, "Layout")
      .def(nb::init<>())
      .def_rw("fit", &Layout::fit)
      .def_rw("tp", &Layout::tp)
      .def_rw("ring", &Layout::ring)
      .def_rw("ulysses", &Layout::ulysses)
      .def_rw("cfg", &Layout::cfg)
      .def_rw("dp", &Layout::dp)
      .def_rw("pp", &Layout::pp)
      .def_rw("shares", &Layout::shares)
      .def_rw("shares_fit", &Layout::shares_fit)
      .def_rw("modulation", &Layout::modulation)
      .def_rw("text", &Layout::text)
      .def_rw("decode", &Layout::decode)
      .def_rw("ring_form", &Layout::ring_form)
      .def_rw("collectives", &Layout::collectives)
      .def_rw("deadline", &Layout::deadline)
      .def_rw("ranks", &Layout::ranks);
}

void bind_offload(nb::module_& m) {
  nb::enum_<OffloadMode>(m, "OffloadMode")
      .value("none", OffloadMode::kNone)
      .value("model", OffloadMode::kModel)
      .value("block", OffloadMode::kBlock)
      .value("leaf", OffloadMode::kLeaf)
      .value("sequential", OffloadMode::kSequential);
  nb::enum_<Residency>(m, "Residency")
      .value("leading", Residency::kLeading)
      .value("strided", Residency::kStrided);
  nb::enum_<Pin>(m, "Pin")
      .value("always", Pin::kAlways)
      .value("on_the_fly", Pin::kOnTheFly)
      .value("never", Pin::kNever);
  nb::enum_<DiskReads>(m, "DiskReads")
      .value("auto", DiskReads::kAuto)
      .value("direct", DiskReads::kDirect)
      .value("mapped", DiskReads::kMapped);
  nb::class_<Offload>(m, "Offload")
      .def(nb::init<>())
      .def_rw("transformer", &Offload::transformer)
      .def_rw("text", &Offload::text)
      .def_rw("vae", &Offload::vae)
      .def_rw("blocks", &Offload::blocks)
      .def_rw("prefetch", &Offload::prefetch)
      .def_rw("resident", &Offload::resident)
      .def_rw("residency", &Offload::residency)
      .def_rw("pin", &Offload::pin)
      .def_rw("folder", &Offload::folder)
      .def_rw("reads", &Offload::reads)
      .def_rw("checks_order", &Offload::checks_order);
}

void bind_memory(nb::module_& m) {
  nb::enum_<Quantize>(m, "Quantize")
      .value("none", Quantize::kNone)
      .value("int8", Quantize::kInt8)
      .value("int8_v1", Quantize::kInt8V1)
      .value("int8_dynamic", Quantize::kInt8Dynamic)
      .value("fp8", Quantize::kFloat8);
  nb::class_<Budget>(m, "Budget")
      .def(nb::init<>())
      .def_rw("device", &Budget::device)
      .def_rw("host", &Budget::host)
      .def_rw("may_quantize", &Budget::may_quantize)
      .def_rw("may_quantize_text", &Budget::may_quantize_text);
  nb::enum_<RecordedStep>(m, "RecordedStep")
      .value("kept", RecordedStep::kKept)
      .value("dropped", RecordedStep::kDropped);
  nb::class_<Memory>(m, "Memory")
      .def(nb::init<>())
      .def_rw("quantize", &Memory::quantize)
      .def_rw("quantize_text", &Memory::quantize_text)
      .def_rw("keep_dense", &Memory::keep_dense)
      .def_rw("offload", &Memory::offload)
      .def_rw("recorded_step", &Memory::recorded_step)
      .def_rw("budget", &Memory::budget)
      .def_rw("preset", &Memory::preset)
      .def_rw("fit", &Memory::fit);
}

void bind_cache(nb::module_& m) {
  nb::enum_<CacheMode>(m, "CacheMode")
      .value("off", CacheMode::kOff)
      .value("first_block", CacheMode::kFirstBlock)
      .value("accumulated", CacheMode::kAccumulated);
  nb::class_<CacheOptions>(m, "CacheOptions")
      .def(nb::init<>())
      .def_rw("mode", &CacheOptions::mode)
      .def_rw("threshold", &CacheOptions::threshold)
      .def_rw("most_in_a_row", &CacheOptions::most_in_a_row)
      .def_rw("polynomial", &CacheOptions::polynomial);
}

}  // namespace

void bind_options(nb::module_& m) {
  bind_words(m);
  bind_layout(m);
  bind_offload(m);
  bind_memory(m);
  bind_cache(m);
  nb::class_<Adapter>(m, "Adapter")
      .def(
          "__init__",
          [](Adapter* self, const std::filesystem::path& file, double scale) {
            new (self) Adapter{.file = file, .scale = scale};
          },
          nb::arg("file"), nb::arg("scale") = 1.0)
      .def_rw("file", &Adapter::file)
      .def_rw("scale", &Adapter::scale);
  m.def("adapter_in", &adapter_in, nb::arg("name"));
  m.def("check_adapter", &check_adapter, nb::arg("name"));
  nb::class_<PipelineOptions>(m, "PipelineOptions")
      .def(nb::init<>())
      .def("copy", [](const PipelineOptions& self) { return self; })
      .def_rw("model", &PipelineOptions::model)
      .def_rw("components", &PipelineOptions::components)
      .def_rw("published", &PipelineOptions::published)
      .def_rw("comfy", &PipelineOptions::comfy)
      .def_rw("text_encoder_files", &PipelineOptions::text_encoder_files)
      .def_rw("vae_file", &PipelineOptions::vae_file)
      .def_rw("controlnets", &PipelineOptions::controlnets)
      .def_rw("redux", &PipelineOptions::redux)
      .def_rw("adapters", &PipelineOptions::adapters)
      .def_rw("adapter_mode", &PipelineOptions::adapter_mode)
      .def_rw("dtype", &PipelineOptions::dtype)
      .def_rw("device", &PipelineOptions::device)
      .def_rw("devices", &PipelineOptions::devices)
      .def_rw("threads", &PipelineOptions::threads)
      .def_rw("graphs", &PipelineOptions::graphs)
      .def_rw("text_stream", &PipelineOptions::text_stream)
      .def_rw("layout", &PipelineOptions::layout)
      .def_rw("memory", &PipelineOptions::memory)
      .def_rw("cache", &PipelineOptions::cache);
}

}  // namespace braid::python
