// Flags that a line gives without effect, in one sentence each.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/flags/picture_flags.h"
#include "braid/braid.h"
#include "pipeline/memory/stated.h"

namespace braid {

// Whether the modes say so of any part.
bool offloads(const Offload& offload);

// "--prefetch is not used: nothing is offloaded". `fit` is what the command makes of settings that
// are open: where it, a budget or a preset may choose to offload, no flag counts as unused.
std::vector<std::string> unused_memory_flags(const PipelineOptions& options,
                                             const StatedMemory& stated, Fit fit);

// "--quantize-skip is not used: the transformer is not quantized".
std::vector<std::string> unused_quantize_flags(const Memory& memory, const StatedMemory& stated);
// Those of `braid convert`, and flags that have to be given again when its files are drawn with.
std::vector<std::string> unused_convert_flags(const Memory& memory, const StatedMemory& stated);

// "--cache-limit is not used: --cache is off". `given`: flags of the line.
std::vector<std::string> unused_cache_flags(const CacheOptions& cache,
                                            const std::set<std::string>& given);

// "--ring-form is not used: there is no --ring", for values other than the default.
std::vector<std::string> unused_layout_flags(const PipelineOptions& options);

// "--lora-mode is not used: there is no --lora", where the line alone brings LoRAs and pictures.
std::vector<std::string> unused_request_flags(const PipelineOptions& options,
                                              const PictureFlags& pictures);

}  // namespace braid
