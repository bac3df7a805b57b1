#include "pipeline/memory/stated.h"

namespace braid {

StatedMemory stated_in(const Memory& memory) {
  const Memory defaults;
  const auto& asked = memory.offload;
  const auto& usual = defaults.offload;
  return {.quantize = memory.quantize != defaults.quantize,
          .quantize_text = memory.quantize_text != defaults.quantize_text,
          .transformer = asked.transformer != usual.transformer,
          .text = asked.text != usual.text,
          .vae = asked.vae != usual.vae,
          .blocks = asked.blocks != usual.blocks,
          .prefetch = asked.prefetch != usual.prefetch,
          .resident = asked.resident != usual.resident,
          .residency = asked.residency != usual.residency,
          .pin = asked.pin != usual.pin};
}

}  // namespace braid
