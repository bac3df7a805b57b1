// Codings of weights that Braid cannot read: which one a checkpoint has, and what to do.
#pragma once

#include <string>

#include "weights/files/checkpoint.h"

namespace braid {

// What to do about a coding that Braid cannot read, for the end of a sentence.
inline constexpr const char* kFilesToTake =
    "take the model's own files, or fp8 or GGUF ones; Braid quantizes to int8 or fp8 while it "
    "loads";

// Throws OtherCoding naming it, if tensors that only it has, or the `quantization_config` of
// the config.json beside `source` together with coded tensors, tell it.
void refuse_other_coding(const StoredByName& tensors, const std::filesystem::path& source);

// A clause on a weight of integers whose scales are not there; empty if there is none. Nothing can
// be drawn with it, though a file may be looked at.
std::string codes_without_scales(const StoredByName& tensors);

}  // namespace braid
