#include "weights/files/element_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace braid {
namespace {

struct ElementTypeRow {
  const char* name;
  Block block;
};

// Rows stand in the order of ElementType. Names and sizes are from
// https://github.com/huggingface/safetensors, "Format", and https://github.com/ggml-org/ggml,
// ggml-common.h
constexpr std::array<ElementTypeRow, 33> kElementTypes = {
    {{"BOOL", {1, 1}},        {"U8", {1, 1}},       {"I8", {1, 1}},
     {"I16", {1, 2}},         {"U16", {1, 2}},      {"I32", {1, 4}},
     {"U32", {1, 4}},         {"I64", {1, 8}},      {"U64", {1, 8}},
     {"F8_E4M3", {1, 1}},     {"F8_E5M2", {1, 1}},  {"F8_E8M0", {1, 1}},
     {"F16", {1, 2}},         {"BF16", {1, 2}},     {"F32", {1, 4}},
     {"F64", {1, 8}},         {"C64", {1, 8}},      {"F8_E4M3FNUZ", {1, 1}},
     {"F8_E5M2FNUZ", {1, 1}}, {"Q4_0", {32, 18}},   {"Q4_1", {32, 20}},
     {"Q5_0", {32, 22}},      {"Q5_1", {32, 24}},   {"Q8_0", {32, 34}},
     {"Q2_K", {256, 84}},     {"Q3_K", {256, 110}}, {"Q4_K", {256, 144}},
     {"Q5_K", {256, 176}},    {"Q6_K", {256, 210}}, {"IQ4_NL", {32, 18}},
     {"IQ4_XS", {256, 136}},  {"F4_E2M1", {2, 1}},  {"F4_E2M1_SWAPPED", {2, 1}}}};

}  // namespace

const char* element_type_name(ElementType type) { return kElementTypes[std::size_t(type)].name; }
Block block_of(ElementType type) { return kElementTypes[std::size_t(type)].block; }
bool is_of_blocks(ElementType type) { return block_of(type).numbers > 1; }
bool is_float8(ElementType type) {
  return type == ElementType::kFloat8E4M3 || type == ElementType::kFloat8E5M2;
}
bool is_float4(ElementType type) {
  return type == ElementType::kFloat4E2M1 || type == ElementType::kFloat4E2M1Swapped;
}

std::uint64_t bytes_of(const std::vector<std::int64_t>& shape, ElementType type,
                       const std::string& where) {
  const auto [numbers, bytes] = block_of(type);
  const auto last = shape.empty() ? 1 : shape.back();
  require(last % numbers == 0, where, " has rows of ", last,
          " numbers, which do not make up blocks of ", numbers, " as ", element_type_name(type),
          " has");
  auto total = std::uint64_t(bytes);
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    const auto extent = std::uint64_t(dim + 1 < shape.size() ? shape[dim] : last / numbers);
    require(!__builtin_mul_overflow(total, extent, &total), where,
            " has a shape of more bytes than 64 bits can count");
  }
  return total;
}

void check_coverage(std::vector<TensorEntry> entries, const Coverage& coverage,
                    const std::string& source) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.size) < std::pair(b.begin, b.size);
  });
  std::uint64_t at = coverage.begin;
  const auto padding_after = [&](std::uint64_t end) {
    return (coverage.padding_to - end % coverage.padding_to) % coverage.padding_to;
  };
  for (const auto& entry : entries) {
    require(entry.begin >= at, source, ": the bytes of tensor '", entry.name,
            "' overlap those of another");
    require(entry.begin - at <= padding_after(at), source, ": ", entry.begin - at,
            " bytes before tensor '", entry.name, "' belong to no tensor");
    at = entry.begin + entry.size;
  }
  require(coverage.end - at <= padding_after(at), source, ": the last ", coverage.end - at,
          " bytes belong to no tensor");
}

}  // namespace braid
