// ComfyUI's JSON description of a coded layer: in a byte tensor `B.comfy_quant`, or for all layers
// in the header entry `_quantization_metadata`.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"
#include "weights/files/checkpoint.h"

namespace braid {

struct ComfyMark {
  std::string format;                 // "float8_e4m3fn", "nvfp4"
  std::int64_t rotated_together = 0;  // as StoredTensor's
  std::string where;                  // for errors: the file and the mark's place in it
};

class ComfyMarks {
 public:
  // The mark of layer `base`; its tensor is removed from `tensors`. Throws InputError for invalid
  // JSON or an invalid rotation.
  std::optional<ComfyMark> take(std::map<std::string, StoredTensor>& tensors,
                                const std::string& base, const StoredTensor& weight);
  bool has_note(const StoredTensor& weight) { return !note_of(*weight.file).is_null(); }

 private:
  const Json& note_of(const MappedFile& file);

  std::map<std::string, Json> notes_;  // by file, for its layers
};

}  // namespace braid
