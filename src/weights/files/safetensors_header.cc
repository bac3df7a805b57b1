#include "weights/files/safetensors_header.h"

#include <nlohmann/json.hpp>

#include "base/byte_order.h"
#include "base/error.h"
#include "base/json.h"

namespace braid {
namespace {

constexpr const char* kNotes = "__metadata__";
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's own limit
// A tensor has ten values, and a value takes a hundred bytes.
constexpr std::size_t kMostValues = 2'000'000;

ElementType type_named(const std::string& name, const std::string& where) {
  for (int type = 0; type <= int(ElementType::kFloat8E5M2Fnuz); ++type)
    if (element_type_name(ElementType(type)) == name) return ElementType(type);
  for (const auto* const packed : {"F4", "F6_E2M3", "F6_E3M2"})
    if (name == packed)
      throw OtherCoding(text_of(where, " has the dtype ", name,
                                ", which Braid cannot read: take a ",
                                "file in 8 or 16 bits, or a GGUF file"));
  throw InputError(text_of(where, " has the unknown dtype '", name, "'"));
}

TensorEntry parse_entry(const std::string& name, const Json& json, const std::string& source,
                        std::uint64_t data_begin, std::uint64_t data_size) {
  const auto where = text_of(source, ": tensor '", name, "'");
  const JsonObject object(json, where);
  TensorEntry entry{.name = name,
                    .type = type_named(object.string("dtype"), where),
                    .shape = {},
                    .begin = 0,
                    .size = 0};
  object.at("shape");  // [] is a scalar; no shape at all is an error
  entry.shape = object.integers_or("shape", {}, 0, INT64_MAX);
  const auto offsets = object.integers_or("data_offsets", {}, 0, INT64_MAX);
  require(offsets.size() == 2 && offsets[0] <= offsets[1], where,
          " should have two ascending data_offsets");
  const auto begin = std::uint64_t(offsets[0]), end = std::uint64_t(offsets[1]);
  require(end <= data_size, where, " ends at byte ", end, " of the data, but the file has ",
          data_size,
          " bytes of it: its download was not completed, it was truncated, or its header is wrong");
  const auto wanted = bytes_of(entry.shape, entry.type, where);
  require(end - begin == wanted, where, " should have ", wanted, " bytes by its shape and dtype, ",
          "its data_offsets give it ", end - begin);
  entry.begin = data_begin + begin;
  entry.size = wanted;
  return entry;
}

std::string_view header_of(std::span<const std::byte> file, std::uint64_t length) {
  return {reinterpret_cast<const char*>(file.data()) + 8, std::size_t(length)};
}

// Requests wait for the notes of adapters, and to parse a header takes as long as to find all
// layers in it.
bool may_have_notes(std::string_view header) {
  const auto has = [&](std::string_view words) { return header.find(words) != header.npos; };
  return has(kNotes) || has("\\");  // an escape may spell it, too
}

}  // namespace

std::vector<TensorEntry> parse_safetensors_header(std::span<const std::byte> file,
                                                  const std::string& source) {
  require(file.size() >= 8, source, " is not a safetensors file: it has only ", file.size(),
          " bytes");
  const auto length = little_endian(file.data(), 8);
  require(length <= kMaxHeader, source, " is not a safetensors file: its header claims ", length,
          " bytes, at most ", kMaxHeader, " are allowed");
  require(length <= file.size() - 8, source, " claims a header of ", length,
          " bytes, but the file has only ", file.size(),
          " bytes: its download was not completed, or it was truncated");

  const auto json = parse_json(header_of(file, length), source, kMostValues);
  require(json.is_object(), source, ": its header should be a JSON object");
  const auto data_begin = 8 + length;
  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : json.items()) {
    if (name != kNotes)
      entries.push_back(parse_entry(name, value, source, data_begin, file.size() - data_begin));
    else
      require(value.is_object() || value.is_null(), source, ": '", kNotes, "' should be an object");
  }
  // as the reference implementation requires
  check_coverage(entries, {.begin = data_begin, .end = file.size()}, source);
  return entries;
}

std::string safetensors_note(std::span<const std::byte> file, const std::string& key) {
  const auto notes = safetensors_notes(file);
  const auto note = notes.find(key);
  return note == notes.end() ? "" : note->second;
}

std::map<std::string, std::string> safetensors_notes(std::span<const std::byte> file) {
  const auto header = header_of(file, little_endian(file.data(), 8));
  std::map<std::string, std::string> texts;
  if (!may_have_notes(header)) return texts;
  const auto json = parse_json(header, "the header", kMostValues);
  const auto notes = json.find(kNotes);
  if (notes == json.end()) return texts;
  for (const auto& [key, value] : notes->items())
    if (value.is_string()) texts[key] = value.get<std::string>();
  return texts;
}

}  // namespace braid
