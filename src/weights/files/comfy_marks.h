// What ComfyUI's files say of a layer that is coded, as JSON: in a tensor `B.comfy_quant` of bytes,
// or for all layers in the header's note `_quantization_metadata`.
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
  std::string where;                  // for errors: the file and what says so
};

class ComfyMarks {
 public:
  // That of the layer `base`, whose tensor is no tensor of its own any longer. Throws InputError
  // for what is no JSON or speaks of a rotation that is none.
  std::optional<ComfyMark> take(std::map<std::string, StoredTensor>& tensors,
                                const std::string& base, const StoredTensor& weight);
  bool has_note(const StoredTensor& weight) { return !note_of(*weight.file).is_null(); }

 private:
  const Json& note_of(const MappedFile& file);

  std::map<std::string, Json> notes_;  // of files' layers
};

}  // namespace braid
