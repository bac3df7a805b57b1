#include "weights/files/safetensors_header.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace braid {
namespace {

struct TypeRow {
  const char* name;
  std::uint64_t size;
};

// In the order of ElementType. https://github.com/huggingface/safetensors, "Format"
constexpr std::array<TypeRow, 15> kTypes = {{{"BOOL", 1},
                                             {"U8", 1},
                                             {"I8", 1},
                                             {"I16", 2},
                                             {"U16", 2},
                                             {"I32", 4},
                                             {"U32", 4},
                                             {"I64", 8},
                                             {"U64", 8},
                                             {"F8_E4M3", 1},
                                             {"F8_E5M2", 1},
                                             {"F16", 2},
                                             {"BF16", 2},
                                             {"F32", 4},
                                             {"F64", 8}}};
constexpr std::uint64_t kMaxHeader = 100'000'000;  // the reference implementation's own limit

ElementType type_named(const std::string& name, const std::string& where) {
  const auto it = std::find_if(kTypes.begin(), kTypes.end(),
                               [&](const TypeRow& row) { return row.name == name; });
  require(it != kTypes.end(), where, " has the unknown dtype '", name, "'");
  return ElementType(it - kTypes.begin());
}

// The bytes of `shape` elements of `type`; throws when 64 bits do not hold them.
std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, ElementType type,
                       const std::string& where) {
  std::uint64_t total = size_of(type);
  for (const auto extent : shape)
    require(!__builtin_mul_overflow(total, std::uint64_t(extent), &total), where,
            " has a shape of more bytes than 64 bits can count");
  return total;
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
          data_size, " bytes of it: it is truncated or its header is wrong");
  const auto wanted = bytes_of(entry.shape, entry.type, where);
  require(end - begin == wanted, where, " should have ", wanted, " bytes by its shape and dtype, ",
          "its data_offsets give it ", end - begin);
  entry.begin = data_begin + begin;
  entry.size = wanted;
  return entry;
}

// As the reference implementation demands: one tensor after the other, no overlap, no gap.
void check_coverage(std::vector<TensorEntry> entries, std::uint64_t data_begin,
                    std::uint64_t file_size, const std::string& source) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.size) < std::pair(b.begin, b.size);
  });
  std::uint64_t at = data_begin;
  for (const auto& entry : entries) {
    require(entry.begin >= at, source, ": the bytes of tensor '", entry.name,
            "' overlap those of another");
    require(entry.begin == at, source, ": ", entry.begin - at, " bytes before tensor '", entry.name,
            "' belong to no tensor");
    at += entry.size;
  }
  require(at == file_size, source, ": the last ", file_size - at, " bytes belong to no tensor");
}

}  // namespace

const char* element_type_name(ElementType type) { return kTypes[std::size_t(type)].name; }
std::uint64_t size_of(ElementType type) { return kTypes[std::size_t(type)].size; }

std::vector<TensorEntry> parse_safetensors_header(std::span<const std::byte> file,
                                                  const std::string& source) {
  require(file.size() >= 8, source, " is no safetensors file: it has only ", file.size(), " bytes");
  std::uint64_t length = 0;  // little-endian
  for (int i = 0; i < 8; ++i) length |= std::uint64_t(file[std::size_t(i)]) << (8 * i);
  require(length <= kMaxHeader, source, " is no safetensors file: its header claims ", length,
          " bytes, at most ", kMaxHeader, " are allowed");
  require(length <= file.size() - 8, source, " claims a header of ", length,
          " bytes, but the file has only ", file.size(), " bytes: it is truncated");

  const auto* const text = reinterpret_cast<const char*>(file.data()) + 8;
  const auto json = parse_json({text, std::size_t(length)}, source);
  require(json.is_object(), source, ": its header should be a JSON object");
  const auto data_begin = 8 + length;
  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : json.items())
    if (name != "__metadata__")
      entries.push_back(parse_entry(name, value, source, data_begin, file.size() - data_begin));
  check_coverage(entries, data_begin, file.size(), source);
  return entries;
}

}  // namespace braid
