// The memory settings that a caller has stated, even if as their defaults.
#pragma once

#include "braid/memory.h"

namespace braid {

// Neither a preset nor a budget changes a setting that is stated.
struct StatedMemory {
  bool quantize = false, quantize_text = false;
  bool transformer = false, text = false, vae = false;  // modes of Offload
  bool blocks = false, prefetch = false, resident = false, residency = false, pin = false;
};

// Calls `visit` with each mark of `stated`, a StatedMemory, and a function from a Memory to the
// setting that the mark belongs to.
template <class Stated, class Visit>
void visit_stated(Stated& stated, const Visit& visit) {
  visit(
      stated.quantize, [](auto& m) -> auto& { return m.quantize; });
  visit(
      stated.quantize_text, [](auto& m) -> auto& { return m.quantize_text; });
  visit(
      stated.transformer, [](auto& m) -> auto& { return m.offload.transformer; });
  visit(
      stated.text, [](auto& m) -> auto& { return m.offload.text; });
  visit(
      stated.vae, [](auto& m) -> auto& { return m.offload.vae; });
  visit(
      stated.blocks, [](auto& m) -> auto& { return m.offload.blocks; });
  visit(
      stated.prefetch, [](auto& m) -> auto& { return m.offload.prefetch; });
  visit(
      stated.resident, [](auto& m) -> auto& { return m.offload.resident; });
  visit(
      stated.residency, [](auto& m) -> auto& { return m.offload.residency; });
  visit(
      stated.pin, [](auto& m) -> auto& { return m.offload.pin; });
}

// Takes the settings that differ from their defaults as stated, for callers that say nothing else.
StatedMemory stated_in(const Memory& memory);

}  // namespace braid
