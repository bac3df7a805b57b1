#include "weights/files/comfy_marks.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "weights/files/gguf_header.h"
#include "weights/files/safetensors_header.h"

namespace braid {
namespace {

constexpr const char* kNote = "_quantization_metadata";

ComfyMark mark_of(const Json& json, const std::string& where) {
  const JsonObject mark(json, where);
  ComfyMark read{.format = mark.string("format"), .where = where};
  const bool has_more = json.contains("params") && json["params"].is_object();
  const auto params = has_more ? json["params"] : Json::object();
  const JsonObject more(params, where + ": 'params'");
  if (!mark.flag_or("convrot", more.flag_or("convrot", false))) return read;
  const auto size = more.integer_or("convrot_groupsize", 256, 4, 1 << 20);
  read.rotated_together = mark.integer_or("convrot_groupsize", size, 4, 1 << 20);
  auto rest = read.rotated_together;
  while (rest % 4 == 0) rest /= 4;
  require(rest == 1, where, ": 'convrot_groupsize' should be a power of 4, it is ",
          read.rotated_together);
  return read;
}

}  // namespace

std::optional<ComfyMark> ComfyMarks::take(std::map<std::string, StoredTensor>& tensors,
                                          const std::string& base, const StoredTensor& weight) {
  const auto& path = weight.file->path().string();
  if (const auto node = tensors.extract(base + ".comfy_quant"); !node.empty()) {
    const auto& said = node.mapped();
    const auto where = text_of(path, ": '", said.entry.name, "'");
    const auto bytes = said.file->bytes().subspan(said.entry.begin, said.entry.size);
    return mark_of(parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, where),
                   where);
  }
  const auto& note = note_of(*weight.file);
  const auto said = note.find(base);
  if (said == note.end()) return {};
  return mark_of(*said, text_of(path, ": the note of '", base, "'"));
}

const Json& ComfyMarks::note_of(const MappedFile& file) {
  const auto path = file.path().string();
  const auto [note, is_new] = notes_.try_emplace(path);
  if (!is_new || begins_as_gguf(file.bytes())) return note->second;
  const auto text = safetensors_note(file.bytes(), kNote);
  if (text.empty()) return note->second;
  const auto where = text_of(path, ": '", kNote, "'");
  const auto json = parse_json(text, where);
  note->second = JsonObject(JsonObject(json, where).at("layers"), where + ": 'layers'").json();
  return note->second;
}

}  // namespace braid
