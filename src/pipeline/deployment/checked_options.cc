#include "pipeline/deployment/checked_options.h"

#include "base/error.h"
#include "pipeline/devices/rank_threads.h"
#include "pipeline/request/choice.h"

namespace braid {
namespace {

void check_choices(const Layout& layout) {
  checked_choice("layout.fit", layout.fit, Fit::kAuto);
  checked_choice("layout.shares_fit", layout.shares_fit, Fit::kAuto);
  checked_choice("layout.modulation", layout.modulation, SharedModulation::kNo);
  checked_choice("layout.text", layout.text, TextRanks::kShared);
  checked_choice("layout.decode", layout.decode, DecodeRanks::kAll);
  checked_choice("layout.ring_form", layout.ring_form, RingForm::kGather);
  checked_choice("layout.collectives", layout.collectives, Collectives::kNative);
  checked_choice("layout.ranks", layout.ranks, Ranks::kProcesses);
}

void check_choices(const Memory& memory) {
  const auto& offload = memory.offload;
  checked_choice("memory.quantize", memory.quantize, Quantize::kFloat8);
  checked_choice("memory.quantize_text", memory.quantize_text, Quantize::kFloat8);
  checked_choice("memory.recorded_step", memory.recorded_step, RecordedStep::kDropped);
  checked_choice("memory.fit", memory.fit, Fit::kAuto);
  checked_choice("memory.offload.transformer", offload.transformer, OffloadMode::kSequential);
  checked_choice("memory.offload.text", offload.text, OffloadMode::kSequential);
  checked_choice("memory.offload.vae", offload.vae, OffloadMode::kSequential);
  checked_choice("memory.offload.residency", offload.residency, Residency::kStrided);
  checked_choice("memory.offload.pin", offload.pin, Pin::kNever);
  checked_choice("memory.offload.reads", offload.reads, DiskReads::kMapped);
}

// A negative number would otherwise stand for no limit, or for all.
void check_numbers(const PipelineOptions& o) {
  const auto& budget = o.memory.budget;
  require(budget.device >= 0, "memory.budget.device should be at least 0 bytes, it is ",
          budget.device);
  require(budget.host >= 0, "memory.budget.host should be at least 0 bytes, it is ", budget.host);
  require(o.memory.offload.resident >= -1,
          "memory.offload.resident should be a number of groups, or -1 for all, it is ",
          o.memory.offload.resident);
  require(o.condition_cache >= 0, "condition_cache should be at least 0 bytes, it is ",
          o.condition_cache);
  require(o.threads >= 0 && o.threads <= kMostThreads,
          "the number of threads should lie between 0 and ", kMostThreads, ", it is ", o.threads);
}

}  // namespace

void check_options(const PipelineOptions& o) {
  check_choices(o.layout);
  check_choices(o.memory);
  checked_choice("adapter_mode", o.adapter_mode, AdapterMode::kUnmerged);
  checked_choice("dtype", o.dtype, Dtype::kFloat16);
  checked_choice("graphs", o.graphs, Graphs::kOff);
  checked_choice("text_stream", o.text_stream, TextStream::kOwn);
  checked_choice("cache.mode", o.cache.mode, CacheMode::kAccumulated);
  check_numbers(o);
}

}  // namespace braid
